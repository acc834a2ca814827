(el, data, ui) => {
  let hidden = data.position;
  const {table, base} = data, n = table.length, d = table[0].length, cells = ui.$("cells"),
    position = ui.$("position"), column = ui.$("column"), mark = ui.$("mark"),
    follow = ui.$("follow"), angle = (p, i) => p / base ** (2 * i / d),
    // hands as at position p; the dashed ones only if a position was compared
    turn = (name, p) => {
      for (let i = 0; i < d / 2; i++) {
        set(ui.$(name + i), {transform: `rotate(${angle(p, i) * 180 / Math.PI})`});
        ui.$(name + i).style.display = p < 0 ? "none" : "";
      }
    },
    draw = compared => {
      const p = +position.value, c = +column.value, here = table[p], name = c % 2 ? "cos" : "sin",
        x = angle(p, c >> 1), wanted = Math[name](x), y = p * mark.getAttribute("height"), free = hidden < 0;
      ui.text("position-value", p);
      ui.text("column-value", c);
      set(ui.$("row"), {y});
      set(mark, {x: c * mark.getAttribute("width"), y});
      for (let i = 0; i < d / 2; i++) set(ui.$("clock" + i), {"stroke-width": i == c >> 1 ? 4 : 1});
      turn("hand", free ? p : hidden);
      turn("guess", compared ? p : -1);
      follow.ariaPressed = free;
      set(ui.$("curve"), {d: "M" + table.map((row, i) =>
        [160 + 160 / n * (i - p), 60 - 50 * dot(row, here) / Math.sqrt(dot(row, row) * dot(here, here) || 1)]).join("L")});
      // how far each hand is off, in degrees, the short way round
      const off = here.slice(0, (d + 1) / 2).map((_, i) => Math.abs((((angle(p, i) - angle(hidden, i)) * 180 / Math.PI) % 360 + 540) % 360 - 180)),
        far = most(off);
      off.forEach((x, i) => ui.text("off" + i, compared ? fix(x, 0) + "°" : ""));
      ui.say(compared ? p == hidden ? `Yes, the hands show position ${p}.`
        : `Not position ${p}: hand ${far + 1} is ${fix(off[far], 0)}° off, the most of all` + (far ? `; hand 1 is ${fix(off[0], 0)}° off.` : ".")
        : `Position ${p}, column ${c}: ${name}(${p} / ${base}^(${c - c % 2}/${d})) = ${name}(${fix(x)}) = ${fix(wanted)}. ` +
          (Math.abs(wanted - here[c]) < 1e-3 ? "" : `The table has ${fix(here[c])} there. `) + (free ? "" : "Do the hands show it? Compare."));
    };
  position.oninput = column.oninput = () => draw();
  // a mouse may be dragged over the table, and a finger taps it, so that a swipe scrolls the page
  cells.onclick = cells.onpointermove = e => {
    if (e.type != "click" && (!e.buttons || e.pointerType != "mouse")) return;
    const box = cells.getBoundingClientRect();
    position.value = (e.clientY - box.top) / box.height * n - .5;
    column.value = (e.clientX - box.left) / box.width * d - .5;
    draw();
  };
  ui.press("compare", () => draw(hidden >= 0));
  // in an order that only looks like chance
  ui.press("next", () => { hidden = ((hidden < 0 ? +position.value : hidden) * 5 + 7) % n; draw() });
  ui.press("follow", on => { hidden = on ? -1 : data.position; draw() });
}
