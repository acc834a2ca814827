(el, data, ui) => {
  const [depth, step, guess, train] = ["depth", "step", "guess", "train"].map(ui.$), last = data.steps.length - 1,
    names = ["post", "pre"], small = x => x < .001 ? "under 0.001" : fix(x);
  // what was predicted for each depth that has been trained
  const known = {};
  let timer;
  const stop = () => { clearInterval(timer); train.ariaPressed = false },
    draw = () => {
      const n = data.depths[depth.value], at = step.value, here = names.map(name => data[name][depth.value]),
        learned = Object.keys(data.said)[sum(here.map(({loss}, i) => (loss[last] < data.guessing / 2) * (i + 1)))],
        said = here.map(({layers, loss}, k) => {
          const name = names[k], row = layers[at];
          ui.all(`[data-k^=${name}-bar]`).forEach((bar, i) => {
            const height = i < n ? 10 + 90 * (Math.log10(row[i]) - data.low) / data.span : 0;
            set(bar, {x: 320 / n * (i + .1), width: 256 / n, y: 110 - height, height});
          });
          ui.text(name + "-first", "first layer " + small(row[0]));
          ui.text(name + "-last", "last layer " + small(row[n - 1]));
          ui.text(name + "-loss", "loss " + fix(loss[at], 2));
          set(ui.$(name + "-loss-bar"), {width: 318 * loss[at] / data.top});
          return `${name}-norm loss ${fix(loss[at], 2)}`;
        });
      ui.text("depth-value", n);
      ui.text("step-value", data.steps[at]);
      set(depth, {"aria-valuetext": n + " layers"});
      set(step, {"aria-valuetext": data.steps[at] + " steps"});
      step.disabled = !known[n];
      // beside the button, and first of what is said
      ui.say((at < last || !known[n] ? ui.text("verdict", "")
        : ui.text("verdict", sentence(data.said[learned]) + (known[n] == learned ? ", as you predicted." : `; you predicted: ${data.said[known[n]]}.`)) + " ")
        + `${n} layers, ${data.steps[at]} training steps: ${said.join(", ")}.`);
    },
    // another depth is another question
    ask = () => {
      stop();
      step.value = 0;
      guess.value = known[data.depths[depth.value]] || "";
      draw();
    };
  depth.oninput = ask;
  step.oninput = () => { stop(); draw() };
  guess.oninput = stop;
  train.onclick = () => {
    if (train.ariaPressed == "true") return stop();
    if (!guess.value) return ui.say("First choose what you expect.");
    known[data.depths[depth.value]] ||= guess.value;
    train.ariaPressed = true;
    if (step.value == last) step.value = 0;
    timer = setInterval(() => {
      // the view was reset
      if (!step.isConnected) return stop();
      step.value++;
      if (step.value == last) stop();
      draw();
    }, 700);
    draw();
  };
}
