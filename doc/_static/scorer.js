// How the search ranks pages: the guide and recipes before pages for developers and of papers.
const GUIDE = /^(user_guide|how_to|quickstart|choose|install)/;
const LATER = /^(developer|benchmarks|changelog)/;
var Scorer = {
  score: ([page, , , , score]) => score + (GUIDE.test(page) ? 10 : LATER.test(page) ? -15 : 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
