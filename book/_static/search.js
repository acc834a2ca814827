/* Search in the whole book, offline too: sections with excerpts, typing errors forgiven. Data: tools/site_search.py. */
(() => {
"use strict";
const ROOT = document.documentElement.dataset.content_root || "./";
const SHOWN = 12;
let index = null, waiting = [];

const fold = text => text.toLowerCase().normalize("NFD").replace(/[\u0300-\u036f]/g, "");
/* The words of a text; of `batch_first` its parts too, and of "warm-up" the one word "warmup" too. */
const words = text => (fold(text).match(/[\p{L}\p{N}_]+(?:-[\p{L}\p{N}_]+)*/gu) || []).flatMap(word => {
  const parts = word.split("-");
  return [...parts, ...(parts.length > 1 ? [parts.join("")] : []), ...parts.flatMap(p => p.split("_").filter(x => x && x !== p))];
});

/* What else a reader may call it. */
const SAME = {
  kv: "key value", rope: "rotary", mha: "multi head", gqa: "grouped query", mqa: "grouped query", mla: "latent attention", ffn: "feed forward",
  mlp: "feed forward", sdpa: "scaled dot product", bpe: "byte pair", layernorm: "layer norm", normalisation: "norm", normalization: "norm",
  nucleus: "top p", wordpiece: "subword", tokenizer: "vocabulary", tokeniser: "vocabulary", teacher: "teacher forcing", lr: "learning rate",
  tying: "tied", overfitting: "overfit", interpretability: "inspection", seq2seq: "sequence", checkpointing: "checkpoint",
};

function load(then, failed = () => {}) {
  if (index) return then();
  waiting.push([then, failed]);
  if (waiting.length > 1) return;
  window.bookSearch = pages => { index = build(pages); waiting.splice(0).forEach(([go]) => go()); };
  const script = document.createElement("script");
  script.src = ROOT + "_static/search-data.js";
  script.onerror = () => waiting.splice(0).forEach(([, tell]) => tell());
  document.head.append(script);
}

function build(pages) {
  const entries = [], postings = new Map();
  for (const page of pages) for (const [anchor, heading, text] of page.sections) {
    const number = entries.push({address: `${page.address}#${anchor}`, heading, text, page: page.title, first: heading === page.title}) - 1;
    const counts = new Map(), inText = words(text), name = words(heading).join(" ");
    // chapters first, and what explains before what is to be done
    const core = (/\/(deeper|reference)\//.test(page.address) ? 0.8 : 1) * (heading.endsWith("(exercise)") ? 0.7 : 1);
    inText.forEach(w => counts.set(w, (counts.get(w) || 0) + 1));
    const title = new Set(words(heading));
    const long = 0.3 + 0.7 * inText.length / 200;  // a long section holds a word more often by chance (BM25)
    for (const word of new Set([...counts.keys(), ...title])) {
      if (!postings.has(word)) postings.set(word, new Map());
      const count = counts.get(word) || 0;
      const called = title.has(word) ? (heading === page.title ? 2 : 1.5) + 0.4 * (name === word) : 0;
      postings.get(word).set(number, core * (count / (count + 1.2 * long) + called));
    }
  }
  return {entries, postings};
}

/* Number of letters to insert, leave out, replace or swap with their neighbour; more than `most` counts as most + 1. */
function distance(a, b, most) {
  if (Math.abs(a.length - b.length) > most) return most + 1;
  let before = [], last = Array.from({length: b.length + 1}, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      row[j] = Math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] !== b[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) row[j] = Math.min(row[j], before[j - 2] + 1);
    }
    if (Math.min(...row) > most) return most + 1;
    [before, last] = [last, row];
  }
  return last[b.length];
}

/* Words of the book that a typed word may mean, each with how well it fits. */
function meanings(typed) {
  const found = new Map();
  for (const word of index.postings.keys()) {
    if (word === typed) found.set(word, 1);
    else if (typed.length > 1 && word.startsWith(typed)) found.set(word, 0.75);
  }
  if (found.size || typed.length < 4) return found;
  const most = typed.length < 8 ? 1 : 2;
  for (const most_ of [1, most]) {
    for (const word of index.postings.keys()) {
      const d = Math.min(distance(typed, word, most_), distance(typed, word.slice(0, typed.length), most_) + 0.5);
      if (d <= most_) found.set(word, 0.5 / d);
    }
    if (found.size) return found;
  }
  return found;
}

/* Sections that a word finds, by its meanings, each with its weight. */
function found(typed, used) {
  const best = new Map();
  for (const [word, fit] of meanings(typed)) {
    used.add(word);
    for (const [number, weight] of index.postings.get(word)) best.set(number, Math.max(best.get(number) || 0, fit * weight));
  }
  return best;
}

/* The same, or by all the words of its other name. */
function foundByName(typed, used) {
  const best = SAME[typed] && !index.postings.has(typed) ? new Map() : found(typed, used);
  if (!SAME[typed]) return best;
  const each = SAME[typed].split(" ").map(word => found(word, used));
  for (const number of each[0].keys()) if (each.every(one => one.has(number))) {
    const weight = each.reduce((sum, one) => sum + one.get(number), 0) / each.length;
    best.set(number, Math.max(best.get(number) || 0, weight));
  }
  return best;
}

function search(query) {
  const scores = new Map(), used = new Set(), unknown = [];
  const terms = [...new Set(fold(query).match(/[\p{L}\p{N}_]+/gu) || [])];
  let every = null;
  for (const typed of terms) {
    const best = foundByName(typed, used);
    if (!best.size) {
      unknown.push(typed);
      continue;
    }
    // a word in few sections says more; all that the typed word may mean counts as one word
    const rare = Math.log(1 + index.entries.length / best.size);
    for (const [number, weight] of best) best.set(number, weight * rare);
    for (const [number, score] of best) scores.set(number, (scores.get(number) || 0) + score);
    every = every ? new Set([...every].filter(n => best.has(n))) : new Set(best.keys());
  }
  const hits = [...scores].filter(([n]) => !every?.size || every.has(n)).sort((a, b) => b[1] - a[1]);
  const marks = new Set([...used].filter(w => hits.some(([n]) => index.postings.get(w).has(n))));
  return {hits: hits.map(([n]) => index.entries[n]), marks, unknown};
}

/* The text with the words in <mark>; from shortly before the first of them if `room` is given. */
function marked(text, marks, room) {
  const span = document.createElement("span"), found = [];
  for (const match of text.matchAll(/[\p{L}\p{N}_]+(?:-[\p{L}\p{N}_]+)*/gu))
    if (words(match[0]).some(word => marks.has(word))) found.push([match.index, match.index + match[0].length]);
  let from = 0, to = text.length;
  if (room) {
    from = Math.max(0, (found[0] ? found[0][0] : 0) - 60);
    if (from) from = text.indexOf(" ", from) + 1;
    to = Math.min(text.length, from + room);
    if (from) span.append("… ");
  }
  let at = from;
  for (const [a, b] of found) if (a >= from && b <= to) {
    const mark = document.createElement("mark");
    mark.textContent = text.slice(a, b);
    span.append(text.slice(at, a), mark);
    at = b;
  }
  span.append(text.slice(at, to), to < text.length ? " …" : "");
  return span;
}

function show(list, status, query) {
  list.replaceChildren();
  if (!query.trim()) { status.textContent = ""; return; }
  const {hits, marks, unknown} = search(query);
  const without = unknown.length && hits.length ? ` without ${unknown.map(word => `“${word}”`).join(", ")}, which the book does not use` : "";
  status.textContent = hits.length ? `${hits.length} ${hits.length === 1 ? "section" : "sections"}${without}`
    + (hits.length > SHOWN ? `; here are the first ${SHOWN}` : "") : "Nothing found. Try fewer or other words.";
  for (const hit of hits.slice(0, SHOWN)) {
    const item = document.createElement("li"), link = document.createElement("a");
    const [file, anchor] = hit.address.split("#");
    const words = [...marks].filter(w => index.postings.has(w)).slice(0, 8).join(" ");
    link.href = `${ROOT}${file}?find=${encodeURIComponent(words)}#${anchor}`;
    const title = marked(hit.heading, marks);
    title.className = "search-title";
    link.append(title);
    if (!hit.first) link.append(Object.assign(document.createElement("span"), {className: "search-page", textContent: hit.page}));
    const excerpt = marked(hit.text, marks, 180);
    excerpt.className = "search-excerpt";
    link.append(excerpt);
    item.append(link);
    list.append(item);
  }
}

function attach(form) {
  const input = form.querySelector("input[name=q]");
  const box = document.createElement("div"), list = document.createElement("ol"), status = document.createElement("p");
  box.className = "search-results";
  status.setAttribute("role", "status");
  box.append(status, list);
  form.after(box);
  let last = null;
  const look = () => {
    const query = input.value;
    if (query === last) return;
    last = query;
    load(() => { if (input.value === query) show(list, status, query); },
      () => { status.textContent = "The search's data could not be loaded. Reload the page to try again."; });
  };
  input.addEventListener("focus", () => load(() => {}));
  input.addEventListener("input", look);
  form.addEventListener("submit", event => {
    event.preventDefault();
    look();
    list.querySelector("a")?.click();
  });
  form.parentElement.addEventListener("keydown", event => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const stops = [input, ...list.querySelectorAll("a")], at = stops.indexOf(document.activeElement);
    const next = stops[at + (event.key === "ArrowDown" ? 1 : -1)];
    if (at >= 0 && next) { event.preventDefault(); next.focus(); }
  });
  return {input, look};
}

/* The words that were searched for, marked in the section that was found. */
function mark(section, marks) {
  const walker = document.createTreeWalker(section, NodeFilter.SHOW_TEXT), texts = [];
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement;
    if (parent.closest("section") === section && !parent.closest("pre, script, style, svg, math, button, attention-view"))
      texts.push(walker.currentNode);
  }
  for (const text of texts) if (words(text.data).some(word => marks.has(word))) text.replaceWith(...marked(text.data, marks).childNodes);
}

addEventListener("DOMContentLoaded", () => {
  const here = document.querySelector("#main-content form.bd-search");
  for (const form of document.querySelectorAll("form.bd-search")) {
    const {input, look} = attach(form);
    if (form === here) { input.value = new URLSearchParams(location.search).get("q") || ""; look(); }
  }
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const found = new URLSearchParams(location.search).get("find");
  if (target && found) {
    mark(target, new Set(found.split(" ")));
    // back at the place when the fonts have come, which move it
    document.fonts.ready.then(() => target.scrollIntoView());
  }
});
})();
