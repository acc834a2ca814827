(el, data, ui) => {
  const head = ui.$("head"), at = (name, i, j) =>
      head.value < 0 ? sum(data[name].map(w => w[i][j])) / data[name].length : data[name][head.value][i][j],
    draw = () => ["encoder", "decoder", "cross"].forEach(name => data[name][0].forEach((row, i) =>
      row.forEach((_, j) => ui.cell(ui.$(name + i + "," + j), at(name, i, j))))),
    frame = (name, i) => {
      const node = ui.$(name + "-row"), size = node.getAttribute("height");
      set(node, {y: 62 + size * i});
    };
  for (const name of ["encoder", "decoder", "cross"]) {
    const from = name == "encoder" ? data.source : data.target, to = name == "decoder" ? data.target : data.source;
    ui.grid(from.map((_, i) => to.map((_, j) => ui.$(name + i + "," + j))), (i, j) => {
      const words = `“${from[i]}” looks at “${to[j]}” with ${fix(at(name, i, j))}`;
      set(ui.$(name + i + "," + j), {"aria-label": words});
      // the same target word in both maps of the decoder; a source word that is looked at, in the encoder's
      frame(name, i);
      if (name != "encoder") frame(name == "cross" ? "decoder" : "cross", i);
      if (name == "cross") frame("encoder", j);
      ui.say(`${words} (${name}).`);
    });
  }
  head.oninput = () => {
    draw();
    const best = data.target.map((word, i) => {
      const row = data.source.map((_, j) => at("cross", i, j)), j = most(row);
      return [fix(row[j]), `“${word}” looks most at “${data.source[j]}” (${fix(row[j])})`];
    });
    ui.say(`In cross-attention, ${head.selectedOptions[0].text}: ` + best.sort((a, b) => b[0] - a[0]).slice(0, 3).map(told => told[1]).join(", ") + ".");
  };
}
