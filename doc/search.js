// Searches the built site as a browser does, without one: node doc/search.js SITE < queries, one a
// line. Prints an object with the names of the pages that each query finds, the best first.
const fs = require("fs");
const vm = require("vm");

const site = process.argv[2];
const read = (name) => fs.readFileSync(`${site}/${name}`, "utf8");
// What the scripts of Sphinx ask of a browser before there is a query.
const none = { querySelectorAll: () => [], getElementById: () => null, addEventListener() {} };
const browser = vm.createContext({
  console,
  SPHINX_HIGHLIGHT_ENABLED: false,
  _: (text) => text,
  _ready() {},
  ...none,
  document: { ...none, documentElement: { dataset: { content_root: "./" } } },
});
browser.window = browser;
const run = (code) => vm.runInContext(code, browser);

run(read("_static/searchtools.js"));
run(read("_static/language_data.js"));
run("Search.setIndex = (index) => { Search._index = index; };");
run(read("searchindex.js"));

const found = {};
for (const query of fs.readFileSync(0, "utf8").split("\n").filter((line) => line)) {
  browser.asked = query;
  const results = run("Search._performSearch(...Search._parseQuery(asked))");
  // Sphinx takes results from the end of its list, and a page may be found in several places.
  found[query] = [...new Set(results.map(([page]) => page).reverse())];
}
console.log(JSON.stringify(found));
