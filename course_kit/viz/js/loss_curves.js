(el, {curves, tests, names, lines, box: [left, right, top, bottom, most]}, ui) => {
  const step = ui.$("step"), test = ui.$("test"), last = curves[0].length - 1, letters = "ABCD";
  let named;
  const draw = () => {
    const t = +step.value, found = tests[test.value];
    ui.text("step-value", t);
    curves.forEach((curve, i) => {
      ui.text("loss" + i, fix(curve[t]));
      ui.text("name" + i, letters[i] + (named ? ": " + names[i] : ""));
      ui.text("test" + i, found ? "measured " + found[i] : "");
      set(ui.$("curve" + i), {points: curve.slice(0, t + 1).map((loss, s) =>
        (left + (right - left) * s / last).toFixed(1) + "," + (bottom - (bottom - top) * loss / most).toFixed(1)).join(" ")});
    });
    const all = of => curves.map((_, i) => letters[i] + (named ? ` (${names[i]}) ` : " ") + of(i)).join(", ");
    ui.say(found ? `${sentence(test.value)}: ${all(i => found[i])}.`
      : `Loss at step ${t}: ${all(i => fix(curves[i][t]))}; ${lines}.`);
  };
  step.oninput = test.oninput = draw;
  ui.press("names", on => { named = on; draw() });
}
