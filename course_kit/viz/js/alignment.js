(el, {weights, queries, keys, x, y, width, height, start}, ui) => {
  const named = (i, j) => `“${keys[j]}” (${fix(weights[i][j])})`, Q = queries.length,
    // every line with its key; weights below 0.01 have none
    lines = weights.flatMap((row, i) => [...row.keys()].filter(j => row[j] >= .01).map((j, n) => [ui.$("l" + i).children[n], j])),
    best = list => [...list.keys()].sort((a, b) => list[b] - list[a]).slice(0, 3),
    // the lines, the words and the frame of one query, or of one key
    show = (i, k, box) => {
      queries.forEach((_, n) => set(ui.$("l" + n), {opacity: i < 0 || n == i ? 1 : .08}));
      lines.forEach(([line, j]) => set(line, {opacity: k < 0 || j == k ? 1 : .08}));
      for (const [side, list, at] of [["q", queries, i], ["k", keys, k]])
        list.forEach((_, n) => set(ui.$(side + n).firstChild, {"fill-opacity": n == at ? .4 : .1}));
      set(ui.$("frame"), box);
    };
  // a word and the cells of its row, between which the arrow keys walk
  ui.grid(queries.map((query, i) => [ui.$("q" + i), ...ui.all(`[data-k=r${i}] rect`).map((node, j) => {
    set(node, {role: "button", "aria-label": `“${query}” to ${named(i, j)}`});
    return node;
  })]), (i, j) => {
    const row = weights[i], word = `“${queries[i]}”`;
    show(i, -1, {x: x + (j && j - 1) * width, y: y + i * height, width: width * (j ? 1 : row.length), height});
    ui.say((j ? `${word} to ${named(i, j - 1)}. ` : "") + word + " looks most at " + best(row).map(k => named(i, k)).join(", ") + ".");
  });
  ui.grid(keys.map((_, k) => [ui.$("k" + k)]), k => {
    show(-1, k, {x: x + k * width, y, width, height: height * Q});
    ui.say(`“${keys[k]}” gets most from ` + best(weights.map(row => row[k])).map(i => `“${queries[i]}” (${fix(weights[i][k])})`).join(", ") + ".");
  });
  // Tab goes to the word that is chosen
  queries.forEach((_, i) => ui.$("q" + i).tabIndex = i == start ? 0 : -1);
}
