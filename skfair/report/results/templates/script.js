"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = table.querySelectorAll("thead th");
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const rises = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", rises ? "ascending" : "descending");
      const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
      const order = (a, b) => {
        const [x, y] = [key(a), key(b)];
        const [p, q] = [Number(x), Number(y)];
        const both = x !== "" && y !== "" && !Number.isNaN(p) && !Number.isNaN(q);
        return (both ? p - q : x.localeCompare(y)) * (rises ? 1 : -1);
      };
      const body = table.tBodies[0];
      body.append(...[...body.rows].sort(order));
    });
  });
}
// A table that is wider than its place is shown row by row, each value with the head of its column.
const places = [...document.querySelectorAll(".scroll")];
const fit = () => {
  for (const place of places) {
    const table = place.querySelector("table");
    table.classList.remove("stacked");
    table.classList.toggle("stacked", place.scrollWidth > place.clientWidth + 1);
  }
};
for (const table of document.querySelectorAll(".scroll table")) {
  const heads = [...table.querySelectorAll("thead th")].map((head) => head.textContent.trim());
  table.setAttribute("role", "table");
  for (const part of [table.tHead, ...table.tBodies]) part.setAttribute("role", "rowgroup");
  for (const row of table.rows) {
    row.setAttribute("role", "row");
    [...row.cells].forEach((cell, column) => {
      cell.dataset.head = heads[column];
      const isHead = cell.tagName === "TH";
      cell.setAttribute("role", !isHead ? "cell" : row.parentNode === table.tHead ? "columnheader" : "rowheader");
    });
  }
}
// What is folded is printed. The style sheet does it without scripts, but not in older browsers.
let unfolded = [];
addEventListener("beforeprint", () => {
  unfolded = [...document.querySelectorAll("details.folded:not([open])")];
  for (const details of unfolded) details.open = true;
});
addEventListener("afterprint", () => {
  for (const details of unfolded) details.open = false;
});
addEventListener("resize", fit);
document.addEventListener("toggle", fit, true);
fit();
