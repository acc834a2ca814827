(el, data, ui) => {
  const rule = ui.$("rule"), own = rule.lastChild, on = node => node.ariaPressed == "true",
    [rows, out] = [".paint", ".weights"].map(name => ui.all(name).map(row => [...row.children])),
    draw = (i = 0, j = 0) => {
      const node = rows[i][j], seen = on(ui.$("show"));
      ui.text("empty", data.empty.filter((_, a) => {
        const w = softmax(data.scores[a].map((s, b) => on(rows[a][b]) ? s : -Infinity));
        w.forEach((x, b) => ui.cell(out[a][b], x * seen, seen ? fix(x, data.digits) : "?"));
        return seen && !sum(w);
      }).join(" "));
      ui.say(`${node.ariaLabel}: ${on(node) ? "open" : "closed"}. Weights: ` + out[i].map(w => w.textContent).join(", "));
    };
  // the value of an option is its mask
  rule.oninput = () => { rows.flat().forEach((node, n) => node.ariaPressed = rule.value[n] > 0); draw() };
  own.value = rule.value;
  ui.press("show", () => draw());
  ui.grid(rows, draw, (i, j) => {
    rows[i][j].ariaPressed = !on(rows[i][j]);
    // a mask of the list keeps its name
    rule.value = own.value = rows.flat().map(node => +on(node)).join("");
    draw(i, j);
  });
}
