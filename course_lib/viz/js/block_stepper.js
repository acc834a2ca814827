(el, data, ui) => {
  let at = 0, timer;
  const token = ui.$("token"), play = ui.$("play"), boxes = data.steps.map((_, i) => ui.$("box" + i)),
    stop = () => { clearInterval(timer); play.ariaPressed = false },
    draw = () => {
      const {name, state, code, shape} = data.steps[at], row = state[token.value], size = fix(Math.sqrt(dot(row, row)));
      ui.text("code", code);
      ui.text("shape", "shape of all tokens " + shape);
      ui.text("norm", "length of this vector " + size);
      ui.text("numbers", `[${row.slice(0, 4).map(x => fix(x, 2)).join(", ")}${row.length > 4 ? ", …" : ""}]`);
      boxes.forEach((node, i) => set(node, {"aria-pressed": i == at, tabindex: i == at ? 0 : -1}));
      ui.all("[data-k^=bar]").forEach((bar, i) => {
        const x = 60 * (row[i] || 0) / data.top;
        set(bar, {x: 320 * (i + .1) / row.length, width: 256 / row.length, y: 70 - Math.max(x, 0), height: Math.abs(x)});
      });
      ui.say(`Step ${at + 1}, ${name}: token ${data.tokens[token.value]} has length ${size}; all tokens together ${shape}.`);
    },
    go = i => { at = i; draw() };
  ui.grid(boxes.map(node => [node]), () => {}, i => { stop(); go(i) });
  token.oninput = draw;
  play.onclick = () => {
    if (play.ariaPressed == "true") return stop();
    play.ariaPressed = true;
    go(at + 1 < boxes.length ? at : 0);
    timer = setInterval(() => {
      // the view was reset
      if (!play.isConnected) return stop();
      go(at + 1);
      if (at + 1 == boxes.length) stop();
    }, 1200);
  };
}
