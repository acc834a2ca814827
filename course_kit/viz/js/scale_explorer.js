(el, {widths, states, full}, ui) => ui.input("d", i => {
  // without the division, and with it: the path of the histogram, then spread, keys in use and derivative
  const said = states[i].map(([path, ...shown], k) => {
    set(ui.$("path" + k), {d: path});
    shown.map((x, j) => {
      ui.text(`text${k}${j}`, x);
      set(ui.$(`bar${k}${j}`), {width: 110 * x / full[j]});
    });
    return shown[0];
  });
  ui.text("d-value", widths[i]);
  set(ui.$("d"), {"aria-valuetext": widths[i] + " features"});
  ui.say(`With ${widths[i]} features, the spread is ${said[0]} without the division and ${said[1]} with it.`);
})
