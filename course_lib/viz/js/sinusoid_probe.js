(el, data, ui) => {
  const {table, base} = data, n = table.length, d = table[0].length, cells = ui.$("cells"),
    position = ui.$("position"), column = ui.$("column"), mark = ui.$("mark"),
    draw = () => {
      const p = +position.value, c = +column.value, here = table[p], name = c % 2 ? "cos" : "sin",
        angle = i => p / base ** (2 * i / d), x = angle(c >> 1), wanted = Math[name](x),
        y = p * mark.getAttribute("height");
      ui.text("position-value", p);
      ui.text("column-value", c);
      set(ui.$("row"), {y});
      set(mark, {x: c * mark.getAttribute("width"), y});
      for (let i = 0; i < d / 2; i++) {
        set(ui.$("clock" + i), {"stroke-width": i == c >> 1 ? 4 : 1});
        set(ui.$("hand" + i), {transform: `rotate(${angle(i) * 180 / Math.PI})`});
      }
      set(ui.$("curve"), {d: "M" + table.map((row, i) =>
        [160 + 160 / n * (i - p), 60 - 50 * dot(row, here) / Math.sqrt(dot(row, row) * dot(here, here) || 1)]).join("L")});
      ui.say(`Position ${p}, column ${c}: ${name}(${p} / ${base}^(${c - c % 2}/${d})) = ${name}(${fix(x)}) = ${fix(wanted)}. ` +
        (Math.abs(wanted - here[c]) < 1e-3 ? "" : `The table has ${fix(here[c])} there.`));
    };
  position.oninput = column.oninput = draw;
  cells.onpointerdown = cells.onpointermove = e => {
    if (!e.buttons) return;
    const box = cells.getBoundingClientRect();
    position.value = (e.clientY - box.top) / box.height * n - .5;
    column.value = (e.clientX - box.left) / box.width * d - .5;
    draw();
  };
}
