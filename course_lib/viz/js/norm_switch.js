(el, data, ui) => {
  const layer = ui.$("layer"), shown = ui.$("shown"), draw = () => {
    const at = layer.value - 1;
    ui.text("layer-value", layer.value);
    ui.say(`Layer ${layer.value}, ${data.what}: ` + ["post", "pre"].filter(name => {
      const off = ![name, "both"].includes(shown.value);
      ui.$(name + "-panel").hidden = off;
      data[name].forEach((_, i) => set(ui.$(name + i), {"fill-opacity": i == at ? 1 : .35}));
      return !off;
    }).map(name => `${name}-norm ${fix(data[name][at])}`).join(", ") + ".");
  };
  layer.oninput = shown.oninput = draw;
}
