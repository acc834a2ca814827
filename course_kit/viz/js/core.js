// What all views share. A view's script is one function (el, data, ui): it wires the parts of the picture, which are
// there already, and draws them anew when something changes. Lines that start with // and indentation are taken out.
const $ = (el, key) => el.querySelector(`[data-k="${key}"]`),
  fix = (x, digits = 3) => x.toFixed(digits).replace(/^-(0\.?0*)$/, "$1").replace("-", "−"),
  sentence = words => words[0].toUpperCase() + words.slice(1),
  sum = list => list.reduce((a, b) => a + b, 0),
  dot = (a, b) => sum(a.map((x, i) => x * b[i])),
  softmax = row => {
    const top = Math.max(...row), e = row.map(x => top == -Infinity ? 0 : Math.exp(x - top)), all = sum(e);
    return e.map(x => all && x / all);
  },
  most = row => row.indexOf(Math.max(...row)),
  set = (node, attributes) => { for (const name in attributes) node.setAttribute(name, attributes[name]) },
  ARROWS = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]},
  helpers = el => {
    return {
      $: key => $(el, key),
      all: selector => [...el.querySelectorAll(selector)],
      text: (key, words) => $(el, key).textContent = words,
      // what changed, in words, for all readers; announced once it has settled
      say: words => {
        const line = el.querySelector(".say");
        clearTimeout(el.timer);
        el.timer = setTimeout(() => { if (line.textContent != words) line.textContent = words }, 120);
      },
      // calls act(value) at once and whenever a slider, list or field changes
      input: (key, act) => {
        const node = $(el, key), out = $(el, key + "-value"),
          run = () => { if (out) out.textContent = node.value; act(node.value) };
        node.oninput = run;
        return run;
      },
      // a button; one with aria-pressed stays in, and act is told whether it is
      press: (key, act) => {
        const node = $(el, key);
        node.onclick = () => {
          const on = node.getAttribute("aria-pressed") == "false";
          if (node.hasAttribute("aria-pressed")) node.setAttribute("aria-pressed", on);
          act(on);
        };
      },
      // the cell of a map: shade in [0, 1], and text
      cell: (node, shade, words) => {
        node.firstChild.setAttribute("fill-opacity", shade);
        node.classList.toggle("high", shade > .7);
        if (words != null && node.childNodes[1]) node.childNodes[1].textContent = words;
      },
      // move(dx, dy) in the picture's units, by pointer, or by arrow keys in steps
      drag: (node, move, step = 4) => {
        const svg = node.ownerSVGElement;
        let x, y;
        node.onpointerdown = e => { node.setPointerCapture(e.pointerId); [x, y] = [e.clientX, e.clientY] };
        node.onpointermove = e => {
          if (!node.hasPointerCapture(e.pointerId)) return;
          const unit = svg.viewBox.baseVal.width / svg.getBoundingClientRect().width;
          move((e.clientX - x) * unit, (e.clientY - y) * unit);
          [x, y] = [e.clientX, e.clientY];
        };
        node.onkeydown = e => {
          const by = ARROWS[e.key];
          if (by) { e.preventDefault(); move(by[0] * step, by[1] * step) }
        };
      },
      // rows of focusable nodes: arrows walk, one of them can be reached by Tab; see(i, j) on focus and hover,
      // pick(i, j) on click, Enter and Space
      grid: (rows, see, pick) => rows.forEach((row, i) => row.forEach((node, j) => {
        const go = (a, b) => {
          const next = rows[a] && rows[a][b];
          if (next) { rows.flat().forEach(n => n.setAttribute("tabindex", n == next ? 0 : -1)); next.focus() }
        };
        node.setAttribute("tabindex", i || j ? -1 : 0);
        node.onfocus = node.onpointerenter = () => see(i, j);
        node.onclick = () => { go(i, j); (pick || see)(i, j) };
        node.onkeydown = e => {
          const by = ARROWS[e.key];
          if (by) go(i + by[1], j + by[0]);
          else if (e.key == "Enter" || e.key == " ") (pick || see)(i, j);
          else return;
          e.preventDefault();
        };
      }))
    };
  },
  // two characters a weight, see `packed` in view.py
  unpack = text => {
    const of = i => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".indexOf(text[i]), list = [];
    for (let i = 0; i < text.length; i += 2) list.push((of(i) * 64 + of(i + 1)) / 4000);
    return list;
  },
  start = el => {
    const view = window.attentionViews[el.getAttribute("kind")], data = el.querySelector("script");
    if (!view || !data || el.ready) return;
    el.ready = true;
    const first = el.cloneNode(true), line = el.querySelector(".say"), said = line.textContent, run = () => {
      const ui = helpers(el), reset = ui.$("reset");
      view(el, JSON.parse(data.textContent), ui);
      // the picture as it was before the script, and the script anew; the line that is listened to stays
      if (reset) reset.onclick = () => {
        el.replaceChildren(...first.cloneNode(true).childNodes);
        el.querySelector(".say").replaceWith(line);
        run();
        ui.$("reset").focus();
        ui.say(said);
      };
    };
    run();
  },
  register = (kind, view) => {
    (window.attentionViews ||= {})[kind] = view;
    customElements.get("attention-view") || customElements.define("attention-view",
      class extends HTMLElement { connectedCallback() { start(this) } });
    document.querySelectorAll("attention-view").forEach(start);
  };
