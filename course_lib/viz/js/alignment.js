(el, {weights, queries, keys, x, y, width, height, start}, ui) => {
  const named = (i, j) => `“${keys[j]}” (${fix(weights[i][j])})`;
  // a word and the cells of its row, between which the arrow keys walk
  ui.grid(queries.map((query, i) => [ui.$("q" + i), ...ui.all(`[data-k=r${i}] rect`).map((node, j) => {
    set(node, {role: "button", "aria-label": `“${query}” to ${named(i, j)}`});
    return node;
  })]), (i, j) => {
    const row = weights[i], best = [...row.keys()].sort((a, b) => row[b] - row[a]).slice(0, 3);
    queries.forEach((_, k) => set(ui.$("l" + k), {opacity: k == i ? 1 : .08}));
    set(ui.$("frame"), {x: x + (j && j - 1) * width, y: y + i * height, width: width * (j ? 1 : row.length)});
    const word = `“${queries[i]}”`;
    ui.say((j ? `${word} to ${named(i, j - 1)}. ` : "") + word + " looks most at " + best.map(k => named(i, k)).join(", ") + ".");
  });
  // Tab goes to the word that is chosen
  queries.forEach((_, i) => ui.$("q" + i).tabIndex = i == start ? 0 : -1);
}
