(el, data, ui) => {
  let tied = data.tied;
  const draw = () => {
    const boxes = data.names.map(ui.$), [v, d, n, f] = boxes.map(box => +box.value),
      bad = boxes.map(box => !(box.value > 0) || box.value % 1 != 0);
    boxes.forEach((box, i) => { box.ariaInvalid = bad[i]; box.style.outline = bad[i] ? "3px solid var(--leak)" : "" });
    // counts of other sizes than those in the fields would mislead
    ui.$("total").ownerSVGElement.style.opacity = bad.includes(true) ? .25 : "";
    if (bad.includes(true)) return ui.say("Each size must be a whole number of at least 1; the counts are those of before.");
    const a = 4 * d * (d + 1), w = 2 * d * f + f + d,
      terms = [v * d * (tied ? 1 : 3), n * a, n * w, 2 * n * a, n * w, 10 * n * d], all = x => x.toLocaleString("en");
    terms.forEach((x, i) => {
      ui.text(data.keys[i], all(x));
      set(ui.$(data.keys[i] + "-bar"), {width: 316 * x / Math.max(...terms)});
    });
    const times = fix(sum(terms) / data.total, 2) + " × as many as at first";
    ui.text("total", all(sum(terms)));
    ui.text("times", times);
    ui.say(`${all(sum(terms))} parameters, ${times}.`);
  };
  ui.all("input").forEach(node => node.oninput = draw);
  ui.press("tied", on => { tied = on; draw() });
}
