// Finds sections that contain all words of the question. searchIndex has the sections: p is the title of the page, h the
// heading, u the address and t the text.
"use strict";
(function () {
  const form = document.getElementById("search"), input = form.elements.q;
  const results = document.getElementById("results"), count = document.getElementById("count");
  const shown = 50;
  const entries = searchIndex.map((e) => ({ e, title: (e.p + " " + (e.h || "")).toLowerCase(), text: e.t.toLowerCase() }));

  // score returns 0 if a word is missing.
  function score(entry, words) {
    let sum = 0;
    for (const word of words) {
      const inTitle = entry.title.includes(word);
      if (!inTitle && !entry.text.includes(word)) return 0;
      sum += inTitle ? 10 : 1;
    }
    return sum + (entry.e.h ? 0 : 1);
  }

  function element(name, text) {
    const e = document.createElement(name);
    e.textContent = text;
    return e;
  }

  // excerpt returns the text around the first word, with all words marked.
  function excerpt(text, words) {
    const lower = text.toLowerCase();
    const at = Math.max(0, ...words.map((w) => lower.indexOf(w)).slice(0, 1));
    const from = Math.max(0, text.lastIndexOf(" ", Math.max(0, at - 60)) + 1);
    const p = element("p", from > 0 ? "… " : "");
    let rest = text.slice(from, from + 240);
    while (rest !== "") {
      const next = words.map((w) => [rest.toLowerCase().indexOf(w), w.length]).filter((n) => n[0] >= 0).sort((a, b) => a[0] - b[0])[0];
      if (!next) break;
      p.append(rest.slice(0, next[0]), element("mark", rest.slice(next[0], next[0] + next[1])));
      rest = rest.slice(next[0] + next[1]);
    }
    p.append(rest, from + 240 < text.length ? " …" : "");
    return p;
  }

  function search() {
    const words = input.value.toLowerCase().split(/\s+/).filter((w) => w !== "");
    results.replaceChildren();
    count.textContent = "";
    if (words.length === 0) return;
    const found = entries.map((entry) => [score(entry, words), entry.e]).filter((f) => f[0] > 0).sort((a, b) => b[0] - a[0]);
    count.textContent = found.length === 0 ? "Nothing found." : found.length === 1 ? "1 section found." : found.length + " sections found." +
      (found.length > shown ? " The first " + shown + ":" : "");
    for (const [, e] of found.slice(0, shown)) {
      const item = document.createElement("li"), a = element("a", e.h ? e.p + ": " + e.h : e.p);
      a.href = e.u;
      item.append(a, excerpt(e.t, words));
      results.append(item);
    }
  }

  input.value = new URLSearchParams(location.search).get("q") || "";
  form.addEventListener("submit", (event) => { event.preventDefault(); search(); });
  input.addEventListener("input", search);
  search();
})();
