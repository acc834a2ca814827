(el, data, ui) => {
  const rule = ui.$("rule"), own = rule.lastChild, on = node => node.ariaPressed == "true",
    [rows, out] = [".paint", ".weights"].map(name => ui.all(name).map(row => [...row.children])), cells = rows.flat(),
    // what was done: to the cell (i, j), or to the whole mask
    draw = (i, j) => {
      const seen = on(ui.$("show"));
      const empty = data.queries.filter((_, a) => {
        const w = softmax(data.scores[a].map((s, b) => on(rows[a][b]) ? s : -Infinity));
        w.forEach((x, b) => ui.cell(out[a][b], x * seen, seen ? fix(x, data.digits) : "?"));
        return seen && !sum(w);
      });
      ui.text("empty", empty.length ? `No key is open for ${empty.join(", ")}: the weights are zeros here; torch.softmax, over nothing but −∞, would give NaN.` : "");
      if (j >= 0) at = rows[i][j];
      ui.say((j >= 0 ? `${at.ariaLabel}: ${on(at) ? "open" : "closed"}.`
        : cells.filter(node => !on(node)).length + ` of ${cells.length} cells are closed.`)
        + (seen ? ` ${at.ariaLabel.split(", key")[0]} has the weights ${out[rows.findIndex(row => row.includes(at))].map(w => w.textContent).join(", ")}.` : ""));
    };
  let at = cells[0];
  // the value of an option is its mask
  rule.oninput = () => { cells.forEach((node, n) => node.ariaPressed = rule.value[n] > 0); draw() };
  own.value = rule.value;
  ui.press("show", () => draw());
  ui.grid(rows, draw, (i, j) => {
    rows[i][j].ariaPressed = !on(rows[i][j]);
    // a mask of the list keeps its name
    rule.value = own.value = cells.map(node => +on(node)).join("");
    draw(i, j);
  });
}
