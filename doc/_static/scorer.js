// How the search ranks pages: the guide and recipes before pages for developers and of papers.
const GUIDE = /^(user_guide|how_to|quickstart|choose|install)/;
const LATER = /^(developer|benchmarks|changelog)/;
const BELOW = 1000; // more points than a page gets that has every word of a query
var Scorer = {
  score: (result) => {
    const [page, , anchor, , score] = result;
    const share = result[7] ?? 1;
    // An index entry stands above the page: its own anchor has no text, and the page is found twice.
    if (anchor.startsWith("#index-")) result[2] = "";
    const points = score + share * (GUIDE.test(page) ? 10 : LATER.test(page) ? -15 : 0);
    return share < 1 ? Math.max(points, share) - BELOW : points;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

// Sphinx finds the pages that have every word of a query. Where they are few, pages with some of the
// words follow. An index entry is found by the words that it shares with the query: it has 100 points
// if it shares all. Twice and half of these two numbers find as many queries of search_queries.py.
const FEW = 10;
const LEAST = 20;
// A word of an index entry is found by its first letters, of which there must be so many.
const PREFIX = 4;
// A page with another word of a line counts half as much as one with the word of the query.
const SYNONYMS = `
  sex gender women female
  race ethnicity
  sensitive protected
  bias discrimination unfair
  disparity gap
  missing nan null
  error exception fails traceback
  random deterministic reproducible
  save pickle joblib
  limit constraint
  mitigation debiasing
  report dashboard
  plot chart picture
  weights sample_weight
`.trim().split("\n").map((line) => line.trim().split(" "));

function searchByParts(words, findAll) {
  const { docnames, titles, filenames, indexentries } = Search._index;
  const stemmer = new Stemmer();
  const split = (text) => splitQuery(text.toLowerCase()).filter((word) => !stopwords.has(word));
  const hit = (file, anchor, points, kind) =>
    [docnames[file], titles[file], anchor, null, points, filenames[file], kind];
  const entries = Object.entries(indexentries).map(([entry, places]) => ({
    words: new Set(split(entry).map((word) => stemmer.stemWord(word))),
    places: places.filter(([, , isMain]) => isMain),
  }));

  const lines = SYNONYMS.map((line) => line.map((word) => stemmer.stemWord(word)));
  const alike = (word) =>
    new Set([word, ...lines.filter((line) => line.includes(word)).flat()]);
  const has = (entry, word) =>
    entry.words.has(word) ||
    (word.length >= PREFIX && [...entry.words].some((one) => one.startsWith(word)));

  // A word of an index entry counts as one of a title.
  const hits = new Map();
  for (const word of words) {
    const pages = new Map();
    const add = (one) => {
      if (!(pages.get(one[0])?.[4] > one[4])) pages.set(one[0], one);
    };
    for (const other of alike(word)) {
      const part = other === word ? 1 : 0.5;
      for (const one of findAll(new Set([other]), new Set()))
        add([...one.slice(0, 4), part * one[4], ...one.slice(5)]);
      for (const entry of entries)
        if (has(entry, other))
          for (const [file] of entry.places)
            add(hit(file, "", part * Scorer.title, "text"));
    }
    if (pages.size) hits.set(word, [...pages.values()]);
  }
  // A word weighs more if fewer pages have it, and nothing if no page has it.
  const known = [...hits.keys()];
  const weigh = (word) => Math.log((1 + docnames.length) / (hits.get(word)?.length ?? 1));
  const sum = (some) => [...some].reduce((total, word) => total + weigh(word), 0);
  const whole = sum(known);

  const every = new Set(findAll(words, new Set()).map(([page]) => page));
  const pages = new Map();
  for (const [word, found] of hits)
    for (const one of found) {
      const page = pages.get(one[0]) ?? [...one.slice(0, 4), 0, ...one.slice(5), 0];
      page[4] += (one[4] * weigh(word)) / whole;
      page[7] += weigh(word) / whole;
      pages.set(one[0], page);
    }
  for (const [name, page] of pages) page[7] = every.has(name) ? 1 : Math.min(page[7], 0.99);
  const sorted = [...pages.values()].sort((a, b) => Scorer.score(b) - Scorer.score(a));
  const found = sorted.slice(0, every.size < FEW ? every.size + 2 * FEW : every.size);

  for (const entry of entries) {
    const shared = sum(known.filter((word) => has(entry, word)));
    const points = (100 * shared ** 2) / (whole * sum(entry.words));
    if (points > LEAST)
      for (const [file, id] of entry.places) found.push(hit(file, `#${id}`, points, "index"));
  }
  return found;
}

if (typeof Search !== "undefined" && Search.performTermsSearch) {
  const findAll = Search.performTermsSearch;
  Search.performTermsSearch = (words, excluded) => {
    try {
      return searchByParts(words, findAll);
    } catch (error) {
      console.warn(`Only pages with every word are found: ${error}`); // another version of Sphinx
      return findAll(words, excluded);
    }
  };
}
