(el, {widths, states, full}, ui) => ui.input("d", i => {
  // without the division, and with it: the path of the histogram, then spread, keys in use and derivative
  const said = states[i].map(([path, ...shown], k) => {
    set(ui.$("path" + k), {d: path});
    shown.map((x, j) => {
      ui.text(`text${k}${j}`, x);
      set(ui.$(`bar${k}${j}`), {width: 110 * x / full[j]});
    });
    return `spread ${shown[0]}, keys in use ${shown[1]}, derivative ${shown[2]}`;
  });
  ui.text("d-value", widths[i]);
  set(ui.$("d"), {"aria-valuetext": widths[i] + " features"});
  ui.say(`${widths[i]} features. Without division: ${said[0]}. With it: ${said[1]}.`);
})
