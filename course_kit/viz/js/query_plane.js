(el, data, ui) => {
  let hard = false;
  const q = data.query, s = data.scale, node = ui.$("query"), draw = () => {
    const scores = data.key.map(k => dot(k, q)), best = most(scores),
      weights = hard ? scores.map((_, i) => +(i == best)) : softmax(scores),
      x = 160 + s * q[0], y = 160 - s * q[1];
    [...node.children].forEach(disc => set(disc, {cx: x, cy: y}));
    set(ui.$("arrow"), {d: `M160 160L${x} ${y}`});
    weights.forEach((w, i) => {
      const r = 4 + 22 * w ** .5;
      set(ui.$("disc" + i), {r});
      // the name stays above its disc
      set(ui.$("name" + i), {y: 152 - s * data.key[i][1] - r});
      set(ui.$("bar" + i), {width: 100 * w});
      ui.text("weight" + i, fix(w));
    });
    const top = data.names.filter((_, i) => fix(weights[i]) == fix(weights[best])), output = fix(dot(weights, data.value)), at = fix(q[0], 2) + ", " + fix(q[1], 2);
    ui.text("output", output);
    set(node, {"aria-valuetext": "query at " + at});
    ui.say(`With the query at ${at}, “${top.join("”, “")}” ${top[1] ? "each get" : "gets"} ${fix(weights[best])}, and the output is ${output}.`);
  };
  ui.drag(node, (dx, dy) => {
    [dx, -dy].forEach((d, i) => q[i] = Math.max(-150 / s, Math.min(150 / s, q[i] + d / s)));
    draw();
  });
  ui.press("hard", on => { hard = on; draw() });
}
