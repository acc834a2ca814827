(el, data, ui) => {
  const m = ui.$("m"), n = ui.$("n"), {scale} = data,
    spun = ([x, y], a) => [x * Math.cos(a) - y * Math.sin(a), x * Math.sin(a) + y * Math.cos(a)],
    turn = (name, at) => {
      const a = data.angle * at, [x, y] = data[name];
      const [u, v] = spun(data[name], a);
      ["", "-before"].forEach(which => set(ui.$(name + which), {d: `M160 160L${160 + scale * x} ${160 - scale * y}`}));
      set(ui.$(name), {transform: `rotate(${-a * 180 / Math.PI} 160 160)`});
      set(ui.$(name + "-tip"), {transform: `translate(${160 + scale * u} ${160 - scale * v})`, "aria-valuetext": `${name} ${fix(x, 2)}, ${fix(y, 2)} before the turn`});
      ui.text(name + "-turn", `${at} · ${data.angle} = ${fix(a)}`);
      return [u, v];
    },
    draw = () => {
      const score = fix(dot(turn("query", m.value), turn("key", n.value))), apart = fix(m.value - n.value, 0);
      ui.text("m-value", m.value);
      ui.text("n-value", n.value);
      ui.text("offset", apart);
      ui.text("score", score);
      ui.say(`Query at position ${m.value}, key at ${n.value}, difference ${apart}: the score is ${score}.`);
    };
  m.oninput = n.oninput = draw;
  // the arrow after the turn is dragged, and turned back for the one before it; both stay in the picture
  for (const [name, slider] of [["query", m], ["key", n]]) ui.drag(ui.$(name + "-tip"), (dx, dy) => {
    const moved = spun([dx / scale, -dy / scale], -data.angle * slider.value),
      to = data[name].map((x, i) => x + moved[i]), shrink = Math.min(1, 150 / scale / Math.hypot(...to));
    data[name] = to.map(x => x * shrink);
    draw();
  });
  // at the end of the sliders both stay where they are, so that their difference is kept
  ui.press("both", () => {
    if (Math.max(m.value, n.value) < m.max) { m.value++; n.value++; draw() }
    else ui.say("The last position is reached.");
  });
}
