(el, data, ui) => {
  let at = 0, timer;
  const token = ui.$("token"), play = ui.$("play"), boxes = data.steps.map((_, i) => ui.$("box" + i)),
    stop = () => { clearInterval(timer); play.ariaPressed = false },
    draw = () => {
      const {name, state, code, shape} = data.steps[at], row = state[token.value], sizes = state.map(x => Math.sqrt(dot(x, x))),
        size = fix(sizes[token.value]), low = fix(Math.min(...sizes)), high = fix(Math.max(...sizes));
      ui.text("code", code);
      ui.text("shape", "shape of all tokens " + shape);
      ui.text("norm", "length of this vector " + size);
      ui.text("numbers", `[${row.slice(0, 4).map(x => fix(x, 2)).join(", ")}${row.length > 4 ? ", …" : ""}]`);
      boxes.forEach((node, i) => set(node, {"aria-pressed": i == at, tabindex: i == at ? 0 : -1}));
      // lengths are to be predicted before the step is looked at
      boxes[at].lastChild.style.visibility = "";
      ui.all("[data-t]").forEach(bar => set(bar, {"fill-opacity": bar.dataset.t == token.value ? 1 : .4}));
      ui.all("[data-k^=bar]").forEach((bar, i) => {
        const x = 60 * (row[i] || 0) / data.top;
        set(bar, {x: 320 * (i + .1) / row.length, width: 256 / row.length, y: 70 - Math.max(x, 0), height: Math.abs(x)});
      });
      ui.say(`Step ${at + 1}, ${name}: ` + (low == high ? `all tokens have length ${high}.`
        : `lengths go from ${low} to ${high}, and “${data.tokens[token.value]}” has ${size}.`));
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
