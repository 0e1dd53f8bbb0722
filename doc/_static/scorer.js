// How the search ranks pages: the guide and recipes before pages for developers and of papers.
const GUIDE = /^(user_guide|how_to|quickstart|choose|install)/;
const LATER = /^(developer|benchmarks|changelog)/;
var Scorer = {
  score: (result) => {
    const [page, , anchor, , score] = result;
    // An index entry stands above the page: its own anchor has no text, and the page is found twice.
    if (anchor.startsWith("#index-")) result[2] = "";
    return score + (GUIDE.test(page) ? 10 : LATER.test(page) ? -15 : 0);
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
