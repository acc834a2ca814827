(el, data, ui) => {
  let tied = data.tied;
  const draw = () => {
    const [v, d, n, f] = ["vocab_size", "d_model", "num_layers", "d_ff"].map(key => +ui.$(key).value);
    if ([v, d, n, f].some(x => !(x > 0) || x % 1)) return ui.say("Each size must be a whole number of at least 1.");
    const a = 4 * d * (d + 1), w = 2 * d * f + f + d,
      terms = [v * d * (tied ? 1 : 3), n * a, n * w, 2 * n * a, n * w, 10 * n * d], all = x => x.toLocaleString("en");
    terms.forEach((x, i) => {
      ui.text(data.keys[i], all(x));
      set(ui.$(data.keys[i] + "-bar"), {width: 316 * x / Math.max(...terms)});
    });
    ui.text("total", all(sum(terms)));
    ui.say(all(sum(terms)) + " parameters.");
  };
  ui.all("input").forEach(node => node.oninput = draw);
  ui.press("tied", on => { tied = on; draw() });
}
