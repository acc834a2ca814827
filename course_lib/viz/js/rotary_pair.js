(el, data, ui) => {
  const m = ui.$("m"), n = ui.$("n"),
    turn = (name, at) => {
      const a = data.angle * at, [x, y] = data[name];
      set(ui.$(name), {transform: `rotate(${-a * 180 / Math.PI} 160 160)`});
      ui.text(name + "-turn", `${at} · ${data.angle} = ${fix(a)}`);
      return [x * Math.cos(a) - y * Math.sin(a), x * Math.sin(a) + y * Math.cos(a)];
    },
    draw = () => {
      const score = fix(dot(turn("query", m.value), turn("key", n.value))), apart = m.value - n.value;
      ui.text("m-value", m.value);
      ui.text("n-value", n.value);
      ui.text("offset", apart);
      ui.text("score", score);
      ui.say(`Query at position ${m.value}, key at ${n.value}, difference ${apart}: the score is ${score}.`);
    };
  m.oninput = n.oninput = draw;
  // at the end of the sliders both stay where they are, so that their difference is kept
  ui.press("both", () => {
    if (Math.max(m.value, n.value) < m.max) { m.value++; n.value++; draw() }
    else ui.say("The last position is reached.");
  });
}
