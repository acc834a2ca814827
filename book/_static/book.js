/* What a page does beyond the theme: prints well, enlarges figures, makes wide formulas fit. It reads well without. */
(() => {
"use strict";

/* Paper is white, and an answer that is closed there stays closed for ever. */
let before = null;
function toPaper() {
  if (before) return;
  const root = document.documentElement, closed = [...document.querySelectorAll("article details.sd-dropdown:not([open])")];
  before = {theme: root.dataset.theme, closed};
  root.dataset.theme = "light";
  closed.forEach(one => { one.open = true; });
  document.querySelectorAll("article img[loading=lazy]").forEach(image => { image.loading = "eager"; });
}
function toScreen() {
  if (!before) return;
  document.documentElement.dataset.theme = before.theme;
  before.closed.forEach(one => { one.open = false; });
  before = null;
}
addEventListener("beforeprint", toPaper);
addEventListener("afterprint", toScreen);

/* A formula that is wider than the page shrinks, down to three quarters; what is still too wide scrolls. */
const SMALLEST = 0.75;
function fit() {
  // The formula scrolls, not the block around it: Chromium does not count what overflows in MathML as the block's.
  const formulas = [...document.querySelectorAll("article div.math > math")];
  const wide = formula => formula.clientWidth / formula.scrollWidth;
  // All are read before any is written: a page is laid out anew for each change from the one to the other.
  formulas.forEach(formula => { formula.style.fontSize = ""; });
  const ratios = formulas.map(wide);
  formulas.forEach((formula, i) => {
    if (ratios[i] < 1) formula.style.fontSize = `${Math.max(SMALLEST, Math.floor(ratios[i] * 97) / 100)}em`;
  });
  const scrolls = formulas.map((formula, i) => ratios[i] < 1 && formula.scrollWidth > formula.clientWidth + 1);
  formulas.forEach((formula, i) => {
    if (scrolls[i]) formula.tabIndex = 0;  // the arrow keys scroll it then
    else formula.removeAttribute("tabindex");
    formula.style.overflowX = ratios[i] < 1 && !scrolls[i] ? "hidden" : "";  // a pixel is nothing to scroll
  });
  const frames = [...document.querySelectorAll("article a.full-size")];
  const moves = frames.map(frame => frame.scrollWidth > frame.clientWidth + 1);
  frames.forEach((frame, i) => frame.classList.toggle("scrolls", moves[i]));  // book.css says so above the figure
}

/* A figure opens in its full size above the page, where fingers and scroll bars can move it. */
function enlarge(link) {
  const image = link.querySelector("img"), dialog = document.createElement("dialog");
  const close = Object.assign(document.createElement("button"), {type: "button", textContent: "Close"});
  const large = Object.assign(new Image(), {src: link.href, alt: image.alt});
  const wide = Math.max(image.getAttribute("width"), 2 * image.clientWidth);  // a phone shows another picture
  dialog.className = "enlarged";
  dialog.setAttribute("aria-label", "Figure, enlarged");
  large.style.width = `${wide}px`;
  dialog.append(close, large);
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", event => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("close", () => { dialog.remove(); link.focus(); });
  document.body.append(dialog);
  dialog.showModal();
}

addEventListener("DOMContentLoaded", () => {
  for (const link of document.querySelectorAll("article a.full-size"))
    link.addEventListener("click", event => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;  // in a tab of its own, as every link
      event.preventDefault();
      enlarge(link);
    });
  fit();
  document.fonts.ready.then(fit);
  addEventListener("resize", fit);
});

/* Exercises that a reader has solved: a box to tick at each, remembered by this browser, and a mark in lists of exercises. */
const SOLVED = "solved-exercises";
function solved() {
  try { return new Set(JSON.parse(localStorage.getItem(SOLVED) || "[]")); } catch { return new Set(); }
}
function markSolved() {
  const done = solved();
  for (const link of document.querySelectorAll("article td a[href*='#exercise-']"))
    link.classList.toggle("solved", done.has(link.hash.slice("#exercise-".length)));
}
addEventListener("DOMContentLoaded", () => {
  for (const box of document.querySelectorAll("input[data-exercise]")) {
    box.parentElement.hidden = false;
    box.checked = solved().has(box.dataset.exercise);
    box.addEventListener("change", () => {
      const done = solved();
      done[box.checked ? "add" : "delete"](box.dataset.exercise);
      localStorage.setItem(SOLVED, JSON.stringify([...done]));
    });
  }
  markSolved();
});

/* Code is copied with the mouse or by a finger; with Tab, a stop at each of thirty blocks is in the way of everything else.
   Text that is selected can be copied with the keyboard, as anywhere. */
addEventListener("load", () => document.querySelectorAll("button.copybtn").forEach(button => { button.tabIndex = -1; }));
})();
