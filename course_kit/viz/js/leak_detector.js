(el, data, ui) => {
  let token = data.token;
  const states = {}, model = ui.$("model"), inputs = ui.all(".input"), outputs = ui.all(".guess"),
    // of a token in this model: the outputs that were marked, and whether the answer is shown (2: without a prediction)
    state = (j = token) => states[model.value + "." + j] ||= {marks: data.names.map(() => false)},
    quoted = names => names.map(name => `“${name}”`).join(", "),
    draw = words => {
      const {marks, known} = state(), judged = known == 1 && marks.includes(true), wrong = data.names.filter((_, i) => marks[i] != data.moves[model.value][token][i]);
      ui.all("[data-s]").forEach(node => {
        const [m, j] = node.dataset.s.split(".");
        node.style.display = m == model.value && (j == token || node.dataset.stays) && state(j).known ? "" : "none";
      });
      ui.all("[data-u]").forEach((node, j) => node.style.display = state(j).known ? "none" : "");
      inputs.forEach((node, j) => node.ariaPressed = j == token);
      outputs.forEach((node, i) => {
        node.ariaPressed = marks[i];
        node.lastChild.textContent = judged ? "✓✗"[+wrong.includes(data.names[i])] : "";
      });
      set(ui.$("frame"), {x: data.left + data.size * token});
      ui.say(words || (known ? data.said[model.value][token] + (!judged ? "" : wrong.length
        ? " You were wrong about " + quoted(wrong) + "." : " You were right about every output.")
        : `If “${data.inputs[token]}” is changed, which outputs move? Marked: ${quoted(data.names.filter((_, i) => marks[i])) || "none"}.`));
    };
  model.oninput = () => draw();
  ui.grid(inputs.map(node => [node]), () => {}, j => { token = j; draw() });
  ui.grid(outputs.map(node => [node]), () => {}, i => {
    const {marks, known} = state();
    // a prediction stays as it was once the answer is shown
    if (!known) marks[i] = !marks[i];
    draw();
  });
  ui.press("change", () => { state().known ||= 1; draw() });
  ui.press("all", () => { data.inputs.forEach((_, j) => state(j).known ||= 2); draw(data.counts[model.value]) });
}
