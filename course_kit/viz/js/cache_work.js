(el, {states}, ui) => ui.input("step", t => {
  const [paths, said, ...texts] = states[t - 1];
  paths.forEach((d, i) => set(ui.$("path" + i), {d}));
  texts.forEach((x, i) => ui.text("text" + i, x));
  ui.say(said);
})
