(el, data, ui) => {
  const show = ui.$("show"), rule = ui.$("rule"), on = node => node.ariaPressed == "true",
    [rows, out] = [".paint", ".weights"].map(name => ui.all(name).map(row => [...row.children])),
    draw = (i = 0, j = 0) => {
      ui.text("empty", data.empty.filter((_, a) => {
        const w = softmax(data.scores[a].map((s, b) => on(rows[a][b]) ? s : -Infinity));
        w.forEach((x, b) => ui.cell(out[a][b], on(show) ? x : 0, on(show) ? fix(x, data.digits) : "?"));
        return on(show) && !sum(w);
      }).join(" "));
      ui.say(`${rows[i][j].ariaLabel}: ${on(rows[i][j]) ? "open" : "closed"}. Weights of this query: ` +
        out[i].map(node => node.textContent).join(", "));
    };
  // the value of an option is its mask
  rule.oninput = () => { rows.flat().forEach((node, n) => node.ariaPressed = rule.value[n] > 0); draw() };
  ui.press("show", () => draw());
  ui.grid(rows, draw, (i, j) => {
    rows[i][j].ariaPressed = !on(rows[i][j]);
    rule.value = "";
    draw(i, j);
  });
}
