// The reader's own sentence: a form, the words with the weights between them, and on the page `translate` what lies behind.
// tools/live_translator.py writes the elements that are found here by `data-k`. The model runs in worker.js; it is loaded
// when a reader types or asks for a translation, never before.

const TABS = ["next", "maps", "head"];
const KINDS = {
  cross: {query: "target", key: "source"},
  encoder: {query: "source", key: "source"},
  decoder: {query: "target", key: "target"},
};

const NAMES = {cross: "cross-attention", encoder: "encoder self-attention", decoder: "decoder self-attention"};

const element = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node[name] = value;
    else if (name.startsWith("aria-") || (value != null && typeof value != "boolean")) node.setAttribute(name, value);
    else node.toggleAttribute(name, !!value);
  }
  node.append(...children);
  return node;
};
const readable = token => token.replaceAll("▁", "") || "␣";
// How much of the colour a weight gets, in percent: either little enough for dark text on it or enough for light text.
const tint = weight => Math.round(weight > .6 ? 88 + 30 * (weight - .6) : 66 * weight);
const fixed = (x, digits = 2) => x.toFixed(digits).replace("-", "−");
const largest = (row, count) => [...row.keys()].sort((a, b) => row[b] - row[a]).slice(0, count);

/** Messages to the worker, each answered by a promise; `hear` gets what comes before the answer. */
function client(url) {
  const worker = new Worker(url, {type: "module"}), open = new Map();
  let last = 0;
  worker.onmessage = ({data}) => {
    const {hear, resolve, reject} = open.get(data.id) ?? {};
    if (!resolve) return;
    if ("progress" in data || "step" in data) return hear?.(data);
    open.delete(data.id);
    if (data.error) reject(new Error(data.error));
    else resolve(data.cancelled ? null : data.done);
  };
  const failed = () => {
    for (const {reject} of open.values()) reject(new Error("The translator did not start; load the page again."));
    open.clear();
  };
  worker.onerror = worker.onmessageerror = failed;
  return (task, hear) => new Promise((resolve, reject) => {
    open.set(++last, {hear, resolve, reject});
    worker.postMessage({...task, id: last});
  });
}

export function start(root) {
  if (root.ready) return;
  root.ready = true;
  const $ = key => root.querySelector(`[data-k="${key}"]`), full = root.dataset.mode == "full", form = $("form"), field = $("text");
  const {examples, prepared} = JSON.parse($("data").textContent);
  let result = {...prepared, prepared: true}, chosen = {side: "target", at: prepared.start}, over = null, prefix = [];
  let shown = result, kind = "cross", layer = prepared.cross.layers - 1, head = -1, tab = "next", seed = 1, turn = 0, lastTarget = 0, ask, loading;

  // Loading and translating

  // A note about a text goes when another text is translated.
  const note = (text, {about = null, bad = false} = {}) => {
    $("note").textContent = text;
    $("note").classList.toggle("bad", bad);
    note.about = about;
  };
  const load = () => loading ??= (async () => {
    const bar = $("bar");
    ask ??= client(new URL("worker.js", import.meta.url));
    bar.hidden = false;
    try {
      await ask({do: "load", base: new URL(".", import.meta.url).href}, ({progress}) => {
        bar.value = progress;
        bar.textContent = `${Math.round(100 * progress)} %`;
      });
    } catch (error) {
      loading = null;
      throw error;
    } finally { bar.hidden = true }
  })();

  const settings = () => !full ? {search: "greedy"} : {
    search: $("search").value, beamSize: 5, lengthPenalty: 1,
    temperature: +$("temperature").value, topP: +$("top_p").value, seed,
  };
  async function translate(forced = []) {
    const text = field.value, mine = ++turn;
    if (!text.trim()) { note("Type a German sentence first.", {bad: true}); field.focus(); return }
    root.setAttribute("aria-busy", "true");
    if (note.about != text) note("What you type stays in your browser.");
    try {
      show({...result, target: {tokens: ["…"]}, running: true});
      root.querySelector(".words").scrollIntoView({block: "nearest"});
      await load();
      if (mine != turn) return;
      const {ids, tokens, cut} = await ask({do: "tokenize", text});
      if (mine != turn) return;
      const unknown = tokens.filter(token => token == "<unk>").length;
      if (cut) note(`Your text is longer than the model can read: only its first ${ids.length - 1} tokens are translated.`, {about: text});
      else if (unknown) note(`The model does not know ${unknown} of these ${tokens.length - 1} tokens (<unk>), so expect nonsense.`, {about: text});
      prefix = forced;
      show({source: {ids, tokens}, target: {ids: [], tokens: []}, running: true});
      const done = await ask({do: "translate", text, prefix, ...settings()}, ({step}) => {
        if (mine == turn) written(step.tokens);
      });
      if (done == null || mine != turn) return;
      const at = Math.min(forced.length ? forced.length - 1 : wanted.t ?? 0, done.target.tokens.length - 1);
      chosen = {side: KINDS[kind].query, at: kind == "encoder" ? Math.min(wanted.t ?? 0, ids.length - 1) : at};
      wanted.t = null;
      show({...done, text: done.text, sentence: text});
      $("say").textContent = `Translation: ${done.text || "(nothing)"}` + (done.finished ? "" : " … (cut: the model did not end the sentence)");
      remember();
      if (forced.length && full) $("target").children[chosen.at + shifted("target")]?.focus({preventScroll: true});
    } catch (error) {
      if (mine == turn) { show(shown); note(error.message, {bad: true}) }
    } finally {
      if (mine == turn) root.removeAttribute("aria-busy");
    }
  }

  // Words, and the weights between them

  const maps = () => result[kind], sides = () => KINDS[kind];
  const heads = () => head < 0 ? [...Array(maps().heads).keys()] : [head];
  /** The weight with which query i attends to key j, in the chosen head or as the mean of the layer's heads. */
  const weight = (i, j) => {
    const {heads: H, len_q, len_k, weights} = maps();
    return heads().reduce((total, h) => total + weights[((layer * H + h) * len_q + i) * len_k + j], 0) / heads().length;
  };
  /** The weights to or from the word `at` on this side: of the other words, and on which side they are. */
  const related = ({side, at}) => {
    const {query, key} = sides(), {len_q, len_k} = maps(), asks = side == query;
    return asks
      ? {side: key, values: Array.from({length: len_k}, (_, j) => weight(at, j)), asks}
      : {side: query, values: Array.from({length: len_q}, (_, i) => weight(i, at)), asks};
  };

  // The keys of the decoder's self-attention are its inputs: <bos> and the tokens before. So <bos> then gets a chip too.
  const shifted = side => kind == "decoder" && side == "target" && !result.running ? 1 : 0;
  const keyTokens = () => kind == "decoder" ? ["<bos>", ...result.target.tokens] : result[sides().key].tokens;

  /** The English words so far: those that are there already stay. */
  function written(tokens) {
    const row = $("target"), known = result.target.tokens;
    if (known.some((token, i) => token != tokens[i])) { result.target = {tokens}; words("target"); return }
    tokens.slice(known.length).forEach((token, i) => row.append(element("span", {class: chipClass(token, known.length + i)},
      element("span", {}, readable(token)), element("small"))));
    result.target = {tokens: [...tokens]};
  }
  const chipClass = (token, i) => "chip" + (token.startsWith("▁") || i == 0 || token.startsWith("<") ? " first" : "");

  function words(side) {
    const {tokens} = result[side], row = $(side), first = shifted(side), inert = !result.running && kind != "cross" && side != sides().query;
    const old = row.contains(document.activeElement);
    row.replaceChildren(...tokens.map((token, i) => {
      const chip = element("button", {
        type: "button", class: chipClass(token, i), disabled: inert || result.running,
        tabindex: i == (chosen.side == side ? chosen.at : 0) ? 0 : -1,
        onclick: () => choose(side, i),
        onpointerenter: event => { if (event.pointerType == "mouse") { over = {side, at: i}; shade() } },
        onpointerleave: () => { over = null; shade() },
        onkeydown: event => {
          const to = i + {ArrowRight: 1, ArrowLeft: -1, Home: -i, End: tokens.length - 1 - i}[event.key];
          if (!(to >= 0 && to < tokens.length)) return;
          event.preventDefault();
          choose(side, to);
          row.children[to + first].focus();
        },
      }, element("span", {}, readable(token)), element("small", {"aria-hidden": "true"}, ""));
      if (side == "target" && i < prefix.length) chip.classList.add("given");
      return chip;
    }));
    if (first) row.prepend(element("span", {class: "chip first"}, element("span", {}, "<bos>"), element("small", {"aria-hidden": "true"}, "")));
    if (old) row.children[chosen.at + first]?.focus();
  }

  function shade() {
    if (result.running) return;
    const at = over ?? chosen, {side: other, values, asks} = related(at);
    for (const side of ["source", "target"]) {
      [...$(side).children].forEach((chip, i) => {
        const own = i - shifted(side), is = side == at.side && own == at.at;
        const known = side == other && i < values.length && !(shifted(side) && own >= at.at), value = known ? values[i] : 0;
        chip.style.setProperty("--weight", `${tint(value)}%`);
        chip.classList.toggle("chosen", is);
        chip.classList.toggle("strong", value > .6);
        if (chip.type) chip.setAttribute("aria-pressed", side == chosen.side && own == chosen.at);
        chip.lastChild.textContent = known ? fixed(value) : "";
      });
    }
    const name = readable(result[at.side].tokens[at.at] ?? ""), names = asks ? keyTokens() : result[other].tokens;
    const best = largest(values, 3).map(i => `“${readable(names[i])}” ${fixed(values[i])}`);
    const where = `${NAMES[kind]}, layer ${layer + 1}, ${head < 0 ? "mean of the heads" : `head ${head + 1}`}`;
    if (!over) $("told").textContent = `${asks ? `“${name}” attends most to` : `Most of the weight on “${name}” comes from`} ${best.join(", ")} (${where}).`;
  }

  function choose(side, at) {
    chosen = {side, at};
    if (side == "target") lastTarget = at;
    over = null;
    [...$(side).children].forEach((chip, i) => { if (chip.type) chip.tabIndex = i - shifted(side) == at ? 0 : -1 });
    shade();
    panel();
    remember();
  }

  function show(next) {
    result = next;
    if (!next.running) shown = next;
    words("source");
    words("target");
    if (full) $("panels").hidden = !!(next.running || next.prepared);
    if ($("more")) $("more").hidden = !!next.running;
    if (next.running) { $("told").textContent = ""; return }
    shade();
    panel();
    const link = $("link");
    if (link) link.href = link.href.split("#")[0] + "#" + new URLSearchParams({s: next.sentence ?? field.value});
  }

  // What lies behind the words: the next word, the maps of all heads, one query in one head

  function panel() {
    if (!full || result.running || result.prepared) return;
    for (const one of TABS) {
      $(`tab-${one}`).setAttribute("aria-selected", one == tab);
      $(`tab-${one}`).tabIndex = one == tab ? 0 : -1;
      $(`panel-${one}`).hidden = one != tab;
    }
    $("where").hidden = tab == "next";
    ({next: nextWord, maps: allMaps, head: oneHead})[tab]();
  }

  function nextWord() {
    const at = chosen.side == "target" ? chosen.at : Math.min(lastTarget, result.steps.length - 1), {chosen: taken, top} = result.steps[at];
    const before = result.target.tokens.slice(0, at).map(readable).join(" ");
    $("next-title").textContent = before ? `After “${before}”, the model's next word:` : "The model's first word:";
    const list = top.some(one => one.id == taken.id) ? top : [...top.slice(0, -1), taken];
    $("next-list").replaceChildren(...list.map(({id, token, probability}) => {
      const is = id == taken.id, end = token == "<eos>";
      return element("li", {}, element("button", {
        type: "button", "aria-pressed": is, disabled: end && !is, style: `--weight:${Math.round(100 * probability)}%`,
        onclick: () => { if (!is) translate([...result.target.ids.slice(0, at), id]) },
      }, element("span", {}, end ? "(end of the sentence)" : (/^\p{L}/u.test(token) ? "+" : "") + readable(token)), element("span", {}, fixed(probability, 3))));
    }));
    $("beams").replaceChildren(...(result.beams ?? []).map(({text, score}) => element("li", {}, `${text} (${fixed(score, 3)})`)));
    $("beams-title").hidden = !result.beams;
  }

  /** A canvas of width × height pixels, which CSS enlarges; `paint(i)` gives the colour, #rrggbb, and opacity of pixel i. */
  function pixels(width, height, attributes, paint) {
    const canvas = element("canvas", {width, height, ...attributes}), context = canvas.getContext("2d"), image = context.createImageData(width, height);
    for (let i = 0; i < width * height; i++) {
      const [colour, opacity] = paint(i);
      image.data.set([1, 3, 5].map(at => parseInt(colour.slice(at, at + 2), 16)), 4 * i);
      image.data[4 * i + 3] = 255 * opacity;
    }
    context.putImageData(image, 0, 0);
    return canvas;
  }
  const colour = name => getComputedStyle(root).getPropertyValue(`--${name}`).trim();

  function allMaps() {
    const {layers, heads: H} = maps();
    $("maps").style.setProperty("--heads", H);
    const {len_q, len_k, weights} = maps(), strong = colour("output"), asks = chosen.side == sides().query;
    const frame = `top:${100 * chosen.at / len_q}%;height:${100 / len_q}%`;
    $("maps").replaceChildren(...Array.from({length: layers * H}, (_, n) => {
      const l = n / H | 0, h = n % H, canvas = pixels(len_k, len_q, {}, i => [strong, weights[n * len_q * len_k + i]]);
      return element("button", {
        type: "button", "aria-pressed": l == layer && h == head,
        onclick: () => { look(kind, l, h); $("maps").children[n].focus() },
      }, element("span", {class: "map"}, canvas, asks ? element("i", {style: frame}) : ""), element("small", {}, `layer ${l + 1}, head ${h + 1}`));
    }));
  }

  async function oneHead() {
    const asking = ++oneHead.turn, {query} = sides(), at = chosen.side == query ? chosen.at : 0, h = Math.max(head, 0);
    const found = await ask({
      do: "head", kind, layer, head: h, query: at, source: result.source.ids, target: result.target.ids,
    }).catch(error => note(error.message, {bad: true}));
    if (!found || asking != oneHead.turn) return;
    const tokens = keyTokens(), size = found.query.length;
    const limit = Math.max(...[found.query, ...found.keys, ...found.values].flat().map(Math.abs));
    const below = colour("query"), above = colour("key");
    const strip = (values, label) => pixels(size, 1, {class: "strip", role: "img", "aria-label": label},
      d => [values[d] < 0 ? below : above, Math.min(1, Math.abs(values[d]) / limit)]);
    const cell = (tag, ...children) => element(tag, tag == "th" ? {scope: "row"} : {}, ...children);
    $("head-title").textContent = `“${readable(result[query].tokens[at])}” in layer ${layer + 1}, head ${h + 1}`;
    $("head-query").replaceChildren(strip(found.query, `query, ${size} numbers`));
    $("head-rows").replaceChildren(...tokens.slice(0, found.keys.length).map((token, j) => {
      const row = element("tr", {},
        cell("th", readable(token)), cell("td", strip(found.keys[j], `key of ${readable(token)}`)),
        cell("td", Number.isFinite(found.scores[j]) && found.scores[j] > -1e30 ? fixed(found.scores[j], 1) : "masked"),
        element("td", {class: "weight", style: `--weight:${Math.round(100 * found.weights[j])}%`}, fixed(found.weights[j])),
        cell("td", strip(found.values[j], `value of ${readable(token)}`)));
      return row;
    }));
    $("head-output").replaceChildren(strip(found.output, `output, ${size} numbers`));
  }
  oneHead.turn = 0;

  function open(one) {
    tab = one;
    if (tab == "next" && kind != "cross") look("cross", layer, head);
    if (tab == "head" && head < 0) look(kind, layer, 0);
    panel();
    remember();
  }

  function look(k, l, h) {
    if (k != kind) {
      // The word stays chosen if it can ask in the new kind; otherwise the first that can.
      kind = k;
      if (chosen.side != sides().query) chosen = {side: sides().query, at: 0};
      words("source");
      words("target");
    }
    [layer, head] = [l, h];
    [$("kind").value, $("layer").value, $("which").value] = [kind, layer, head];
    shade();
    panel();
    remember();
  }

  // The address: a find can be sent to somebody

  const wanted = {};
  function remember() {
    if (!full || result.prepared || result.running) return;
    const {search, temperature, topP} = settings(), state = {s: result.sentence, k: kind, l: layer + 1, h: head + 1, t: chosen.at + 1, v: tab};
    if (search != "greedy") state.m = search;
    if (search == "sample") Object.assign(state, {T: temperature, p: topP, seed});
    if (prefix.length) state.f = prefix.join(".");
    history.replaceState(null, "", "#" + new URLSearchParams(state));
  }
  function recall() {
    const state = new URLSearchParams(location.hash.slice(1)), number = (name, most) => {
      const value = +state.get(name) - 1;
      return Number.isInteger(value) && value >= 0 && value < most ? value : null;
    };
    if (!state.has("s")) return;
    field.value = state.get("s");
    if (!full) return;
    if (KINDS[state.get("k")]) kind = state.get("k");
    layer = number("l", prepared.cross.layers) ?? layer;
    head = number("h", prepared.cross.heads) ?? -1;
    wanted.t = number("t", 1e4);
    if (TABS.includes(state.get("v"))) tab = state.get("v");
    for (const [name, key] of [["m", "search"], ["T", "temperature"], ["p", "top_p"]]) if (state.has(name)) $(key).value = state.get(name);
    if (!$("search").value) $("search").value = "greedy";
    seed = (number("seed", 2 ** 31) ?? 0) + 1;
    wanted.prefix = (state.get("f") ?? "").split(".").filter(Boolean).map(Number).filter(Number.isInteger);
    sampling();
    for (const name of ["temperature", "top_p"]) $(`${name}-value`).textContent = (+$(name).value).toFixed(2);
    [$("kind").value, $("layer").value, $("which").value] = [kind, layer, head];
    // Only a browser that has the model already translates unasked.
    result = {source: {tokens: []}, target: {tokens: []}, running: true};
    note("Press “Translate” to see this sentence.");
    globalThis.caches?.open("translator").then(kept => kept.keys()).then(keys => keys.length && form.requestSubmit()).catch(() => null);
  }
  addEventListener("hashchange", () => { recall(); show(result) });
  const sampling = () => { $("sampling").hidden = $("search").value != "sample" };

  // Wiring

  form.onsubmit = event => {
    event.preventDefault();
    const forced = wanted.prefix ?? [];
    wanted.prefix = null;
    translate(forced);
  };
  field.oninput = () => {
    wanted.prefix = wanted.t = null;
    $("examples").value = "";
    load().catch(error => note(error.message, {bad: true}));
  };
  field.onkeydown = event => {
    if (event.key == "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); form.requestSubmit() }
  };
  $("examples").onchange = event => {
    const example = examples[event.target.value];
    if (!example) return;
    wanted.prefix = wanted.t = null;
    field.value = example.text;
    note(`It means “${example.english}” ${example.why}`, {about: example.text});
    if (loading) translate();
  };
  if (full) {
    for (const one of TABS) {
      const button = $(`tab-${one}`);
      button.onclick = () => open(one);
      button.onkeydown = event => {
        const by = {ArrowRight: 1, ArrowLeft: -1}[event.key];
        if (!by) return;
        event.preventDefault();
        open(TABS[(TABS.indexOf(one) + by + TABS.length) % TABS.length]);
        $(`tab-${tab}`).focus();
      };
    }
    $("kind").onchange = $("layer").onchange = $("which").onchange = () => look($("kind").value, +$("layer").value, +$("which").value);
    $("search").onchange = () => { sampling(); if (loading) translate() };
    for (const name of ["temperature", "top_p"]) {
      $(name).oninput = () => { $(`${name}-value`).textContent = (+$(name).value).toFixed(2) };
      $(name).onchange = () => { if (loading) translate() };
    }
    $("again").onclick = () => { seed++; translate() };
    new MutationObserver(() => panel()).observe(document.documentElement, {attributes: true, attributeFilter: ["data-theme"]});
  }
  recall();
  if (full) [$("kind").value, $("layer").value, $("which").value] = [kind, layer, head];
  show(result);
}
