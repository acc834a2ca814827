(el, data, ui) => {
  const head = ui.$("head"), NAMES = ["encoder", "decoder", "cross"], SAID = ["the encoder", "the decoder", "cross-attention"],
    [map] = ui.all(".cross"), guesses = data.guesses.map((_, n) => ui.$("guess" + n)),
    at = (name, i, j) =>
      head.value < 0 ? sum(data[name].map(w => w[i][j])) / data[name].length : data[name][head.value][i][j],
    draw = () => NAMES.forEach(name => data[name][0].forEach((row, i) =>
      row.forEach((_, j) => ui.cell(ui.$(name + i + "," + j), at(name, i, j))))),
    frame = (name, i) => set(ui.$(name + "-row"), {y: ui.$(name + i + ",0").firstChild.getAttribute("y")});
  NAMES.forEach((name, n) => {
    const from = n ? data.target : data.source, to = n == 1 ? data.target : data.source;
    ui.grid(from.map((_, i) => to.map((_, j) => ui.$(name + i + "," + j))), (i, j) => {
      const node = ui.$(name + i + "," + j), words = `In row “${from[i]}”, ${SAID[n]} reads “${to[j]}” (${fix(at(name, i, j))})`;
      set(node, {"aria-label": words});
      // the chosen cell; the same target word in both maps of the decoder; a source word that is read, in the encoder's
      NAMES.forEach(other => set(ui.$(other + "-cell"), {width: 0}));
      for (const key of ["x", "y", "width"]) set(ui.$(name + "-cell"), {[key]: node.firstChild.getAttribute(key)});
      frame(name, i);
      if (n) frame(n > 1 ? "decoder" : "cross", i);
      if (n > 1) frame("encoder", j);
      ui.say(words + ["", "; the same row of cross-attention is outlined", `; row “${to[j]}” of the encoder is outlined`][n] + ".");
    });
  });
  head.oninput = () => {
    draw();
    const best = data.target.map((word, i) => {
      const row = data.source.map((_, j) => at("cross", i, j)), j = most(row);
      return [fix(row[j]), `“${word}” looks most at “${data.source[j]}” (${fix(row[j])})`];
    });
    ui.say(map.classList.contains("covered") ? "Choose first what you expect of cross-attention." :
      `In ${head.value < 0 ? "the average of the heads" : head.selectedOptions[0].text} of cross-attention, ` + best.sort((a, b) => b[0] - a[0]).slice(0, 3).map(told => told[1]).join(", ") + ".");
  };
  map.classList.toggle("covered", !!guesses[0]);
  guesses.forEach((node, n) => node.onclick = () => {
    map.classList.remove("covered");
    guesses.forEach(other => other.ariaPressed = other == node);
    ui.say(`${n == data.pattern ? "As" : "Not as"} you expected: from row to row, the largest weight moves ${data.guesses[data.pattern]}.`);
  });
}
