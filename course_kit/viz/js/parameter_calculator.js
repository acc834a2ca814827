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
      terms = [v * d * (tied ? 1 : 3), n * a, n * w, 2 * n * a, n * w, 10 * n * d], all = x => x.toLocaleString("en"),
      unit = data.longest / Math.max(data.scale, ...terms), times = fix(sum(terms) / data.total, 2) + " × as many as at first";
    terms.forEach((x, i) => {
      const key = data.keys[i], first = data.first[i];
      ui.text(key, all(x));
      ui.text(key + "-times", "× " + fix(x / first, 2));
      set(ui.$(key + "-first"), {width: unit * first});
      set(ui.$(key + "-bar"), {width: unit * x});
    });
    ui.text("total", all(sum(terms)));
    ui.text("times", times);
    ui.say(`The model has ${all(sum(terms))} parameters, ${times}.`);
  };
  ui.all("input").forEach(node => node.oninput = draw);
  ui.press("tied", on => { tied = on; draw() });
}
