// Sorts and filters a table. Without this script the table shows all rows in its first order.
"use strict";
for (const box of document.querySelectorAll(".sortable")) {
  const rows = [...box.querySelectorAll("tbody tr")], heads = [...box.querySelectorAll("th")];
  const filters = box.querySelector(".filters"), selects = [], body = box.querySelector("tbody");
  const count = box.querySelector(".count");

  function element(name, properties) { return Object.assign(document.createElement(name), properties); }
  function labeled(text, control) {
    const label = element("label");
    label.append(element("span", { textContent: text }), control);
    filters.append(label);
    return control;
  }
  const order = (row, i) => row.cells[i].dataset.order, text = (row, i) => row.cells[i].firstChild.textContent;
  const compare = (a, b, i) => order(a, i) ? order(a, i) - order(b, i) || text(a, i).localeCompare(text(b, i)) : text(a, i).localeCompare(text(b, i));

  const words = labeled("Text", element("input", { type: "search" }));
  words.addEventListener("input", filter);
  heads.forEach((head, i) => {
    const button = element("button", { type: "button", textContent: head.textContent });
    head.replaceChildren(button);
    button.addEventListener("click", () => sort(i, head.getAttribute("aria-sort") === "ascending"));
    if (head.dataset.filter === undefined) return;
    const select = labeled(button.textContent, element("select"));
    select.append(element("option", { value: "", textContent: "all" }));
    const sorted = rows.slice().sort((a, b) => compare(a, b, i)).map((row) => text(row, i));
    for (const value of new Set(sorted)) select.append(element("option", { value, textContent: value }));
    select.addEventListener("change", filter);
    selects.push([i, select]);
  });

  function sort(i, descending) {
    for (const head of heads) head.removeAttribute("aria-sort");
    heads[i].setAttribute("aria-sort", descending ? "descending" : "ascending");
    body.append(...rows.slice().sort((a, b) => descending ? compare(b, a, i) : compare(a, b, i)));
  }

  function filter() {
    const wanted = words.value.toLowerCase().split(/\s+/);
    let n = 0;
    for (const row of rows) {
      const all = (row.id + " " + row.textContent).toLowerCase();
      row.hidden = !wanted.every((w) => all.includes(w)) || selects.some(([i, s]) => s.value !== "" && text(row, i) !== s.value);
      if (!row.hidden) n++;
    }
    count.textContent = n === rows.length ? "(" + n + ")" : "(" + n + " of " + rows.length + ")";
  }
}
