const { memo: common, steps, n_limits: nLimits } = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
const panels = steps.map((_, k) => document.querySelector(`article[data-step="${k}"]`));
const percent = (value) => (value === null ? "-" : `${Math.round(100 * value)}%`);
// Which step is shown; both paths begin with the same decisions of today.
const place = () => {
  const k = Number(at("step").value) + (at("held")?.checked ? nLimits : 0);
  return steps[k].limits === null ? 0 : k;
};
const nameOf = (i) => (steps[i].limits === null ? "no limit" : `limit ${panels[i].getAttribute("aria-label")}`);
const other = () => (at("other").value === "" ? null : Number(at("other").value));
const rateOf = (i, view, group) => steps[i].numbers.attributes[view].groups[group]?.rate ?? [null, null, null];
// Move the marks of every group to the rates of the limit that is shown.
const move = (i, j) => {
  for (const table of document.querySelectorAll("#dots table")) {
    const across = (value) => (180 * value) / Number(table.dataset.top);
    const put = (mark, value) => {
      mark.setAttribute("visibility", value === null ? "hidden" : "visible");
      if (value !== null) mark.style.transform = `translateX(${across(value)}px)`;
    };
    const bar = (rect, ends) => {
      const [low, high] = ends[0] === null || ends[1] === null ? [0, 0] : ends.sort((a, b) => a - b);
      rect.setAttribute("x", across(low));
      rect.setAttribute("width", across(high - low));
    };
    for (const row of table.tBodies[0].rows) {
      const [view, group] = [table.dataset.view, row.dataset.group];
      const [before] = rateOf(0, view, group);
      const [now, low, high] = rateOf(i, view, group);
      const against = j === null ? null : rateOf(j, view, group)[0];
      put(row.querySelector(".from"), before);
      put(row.querySelector(".to"), now);
      put(row.querySelector(".against"), against);
      bar(row.querySelector(".span"), [low, high]);
      bar(row.querySelector(".way"), [before, now]);
      const text = percent(before) === percent(now) ? percent(now) : `${percent(before)} → ${percent(now)}`;
      row.querySelector(".share").textContent = text;
      row.querySelector("svg").setAttribute("aria-label", `${group}: ${text}`);
    }
  }
};
const choose = () => {
  const [i, j] = [place(), other()];
  at("step-shown").textContent = panels[i].getAttribute("aria-label");
  at("step").setAttribute("aria-valuetext", nameOf(i));
  at("chosen").textContent = nameOf(i);
  document.body.classList.toggle("two", j !== null && j !== i);
  document.querySelector(".of-other").hidden = j === null;
  panels.forEach((panel, k) => {
    if (!panel) return;
    panel.hidden = k !== i && k !== j;
    panel.classList.toggle("compared", k !== i);
  });
  panels[i].parentNode.prepend(panels[i]);
  document.querySelectorAll(".ticks span").forEach((tick, k) => tick.classList.toggle("now", k === Number(at("step").value)));
  for (const point of document.querySelectorAll(".point")) {
    const k = Number(point.dataset.step);
    point.classList.toggle("now", k === i);
    point.classList.toggle("compared", k === j);
    const isOfOther = k >= nLimits !== Boolean(at("held")?.checked) && steps[k].limits !== null;
    point.classList.toggle("away", k !== i && k !== j && isOfOther);
  }
  move(i, j);
  fit();
};
const written = () => {
  const { label, ...chosen } = steps[place()];
  const said = { reasons: at("reasons").value.trim(), names: at("names").value.trim() };
  return { ...common, date: at("date").value || today(), ...said, ...chosen };
};
const today = () => {
  const now = new Date();
  return new Date(now - 60000 * now.getTimezoneOffset()).toISOString().slice(0, 10);
};
const decide = (event) => {
  event.preventDefault();
  const memo = written();
  const text = JSON.stringify(memo, null, 1);
  const facts = { Decision: `Chosen: ${nameOf(place())}`, Date: memo.date, "Decided by": memo.names || "-", Fingerprint: memo.fingerprint };
  at("memo").querySelector("dl").replaceChildren(...Object.entries(facts).map(([name, value]) => {
    const [row, term, said] = ["div", "dt", "dd"].map((tag) => document.createElement(tag));
    [term.textContent, said.textContent] = [name, value];
    row.append(term, said);
    return row;
  }));
  at("memo").querySelector(".reasons").textContent = memo.reasons || "No reasons were given.";
  const copy = panels[place()].cloneNode(true);
  copy.querySelectorAll("details").forEach((details) => { details.open = true; });
  copy.querySelectorAll("h2").forEach((head) => head.remove());
  copy.querySelectorAll("[aria-label]").forEach((part) => { part.ariaLabel += ", in the memo"; });
  at("memo-panel").replaceChildren(...copy.childNodes);
  at("json").textContent = text;
  URL.revokeObjectURL(at("download").href);
  at("download").href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  at("download").download = `decision-${memo.date}.json`;
  at("memo").hidden = false;
  document.body.classList.add("has-memo");
  at("memo").focus();
};
for (const id of ["pick", "dots", "decide"]) at(id).hidden = false;
document.body.classList.add("scripted");
at("overview").open = false;
at("date").value = today();
for (const id of ["step", "held", "other"]) at(id)?.addEventListener("input", choose);
for (const point of document.querySelectorAll(".point")) {
  point.addEventListener("click", () => {
    const k = Number(point.dataset.step);
    at("step").value = k % nLimits;
    if (at("held")) at("held").checked = k >= nLimits;
    choose();
  });
}
addEventListener("beforeprint", () => { at("overview").open = at("memo").hidden; });
document.querySelector("#decide form").addEventListener("submit", decide);
at("print").addEventListener("click", () => print());
choose();
