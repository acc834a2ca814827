(el, data, ui) => {
  const {q, k, scale, keys, queries} = data, D = k[0].length, step = 308 / D,
    signed = x => (fix(x)[0] == "−" ? "" : "+") + fix(x),
    rows = [...ui.$("rows").children],
    draw = () => {
      const query = q[at], open = data.open[at], products = k.map(key => key.map((x, f) => query[f] * x * scale)),
        scores = products.map(sum), w = softmax(scores.map((s, j) => open[j] ? s : -Infinity)),
        mine = products[now], far = mine.map((_, f) => f).sort((a, b) => Math.abs(mine[b]) - Math.abs(mine[a])),
        order = sorted ? mine.map((_, f) => f).sort((a, b) => mine[b] - mine[a]) : mine.map((_, f) => f),
        top = list => Math.max(...list.map(Math.abs)) || 1, largest = top(products.flat()), paths = {};
      for (const sign of ["plus", "minus"]) for (let n = 1; n < 9; n++) paths[sign + n] = "";
      products.forEach((row, j) => order.forEach((f, place) => {
        const n = Math.floor(8 * Math.abs(row[f]) / largest + .5);
        if (n) paths[(row[f] > 0 ? "plus" : "minus") + n] += `M${place} ${j}.5h1`;
      }));
      for (const key in paths) set(ui.$(key), {d: paths[key]});
      rows.forEach((row, j) => {
        ui.text("s" + j, fix(scores[j]));
        ui.cell(ui.$("w" + j), w[j], open[j] ? fix(w[j]) : "masked");
        row.ariaPressed = j == now;
        row.classList.toggle("chosen", j == now);
      });
      ui.text("asked", "query: " + queries[at]);
      ui.text("pair", `“${queries[at]}” and “${keys[now]}”`);
      [["query", query], ["key", k[now]], ["product", mine]].forEach(([what, values], n) => {
        const y = 62 + 78 * n, high = top(values), bars = ["", ""];
        order.forEach((f, place) => {
          if (values[f]) bars[n == 2 && values[f] < 0 ? 1 : 0] += `M${16 + step * (place + .5)} ${y}v${-22 * values[f] / high}`;
        });
        bars.forEach((d, sign) => ui.$(`bars-${what}-${sign}`) && set(ui.$(`bars-${what}-${sign}`), {d}));
        ui.text("at-" + what, feature < 0 ? "" : `feature ${feature}: ${fix(values[feature])}`);
      });
      set(ui.$("at"), {d: feature < 0 ? "" : `M${16 + step * (order.indexOf(feature) + .5)} 38v206`});
      ui.text("told", `The features that change the score of “${keys[now]}” most: `
        + far.slice(0, 3).map(f => `${f} (${signed(mine[f])})`).join(", ")
        + (D > 3 ? `; the other ${D - 3} together ${signed(sum(far.slice(3).map(f => mine[f])))}` : "") + ".");
      ui.say((feature < 0 ? "" : `Feature ${feature}: ${fix(query[feature])} × ${fix(k[now][feature])} × ${fix(scale)} = ${fix(mine[feature])}. `)
        + `“${queries[at]}” and “${keys[now]}”: score ${fix(scores[now])}, ` + (open[now] ? `weight ${fix(w[now])}.` : "masked."));
    };
  let at = data.query, now = data.key, sorted = false, feature = -1;
  ui.grid(rows.map(row => [row]), j => { now = j; draw() });
  // passing over the rows chooses none
  rows.forEach(row => row.onpointerenter = null);
  ui.press("sort", on => { sorted = on; draw() });
  ui.input("feature", value => { feature = +value; draw() });
  if (ui.$("query")) ui.$("query").oninput = e => {
    at = +e.target.value;
    draw();
  };
}
