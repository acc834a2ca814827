(el, {states}, ui) => {
  const step = ui.$("step"), draw = ui.input("step", t => {
    const {texts, said, cells = {}, past = [], best = [], tile = [0, 0, 0, 0]} = states[t];
    texts.forEach((row, i) => row.forEach((x, j) => ui.text(`t${i}${j}`, x)));
    ui.all(".cell").forEach((node, i) => {
      ui.cell(node, cells[i] || 0);
      node.classList.toggle("past", past.includes(i));
      node.classList.toggle("best", best.includes(i));
    });
    tile.forEach((x, i) => set(ui.$("tile"), {[["x", "y", "width", "height"][i]]: x}));
    ui.say(said);
  });
  ui.$("next").onclick = () => { step.value++; draw() };
}
