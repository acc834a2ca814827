(el, {gaps, sizes, shown}, ui) => {
  let at = 0;
  const logits = gaps.map(gap => (at -= gap) / 1e6), draw = () => {
    const [t, size, p] = ["t", "k", "p"].map(key => ui.$(key).value), k = sizes[size],
      // the n most probable at this temperature, made to sum to one
      first = n => softmax(logits.slice(0, n).map(x => x / t)),
      // of "all", there is no k-th that would be larger
      top = first(logits.filter(x => !(x < logits[k - 1])).length);
    let mass = 0;
    const kept = first(p < 1 && top.findIndex(x => (mass += x) >= p) + 1 || top.length),
      rows = ui.all(".token"),
      // before the filters, and after; the last row is for all that have none
      bars = [first(), kept].map(list => rows.map((_, i) => sum(list.slice(i, i < shown ? i + 1 : 1e9)))),
      full = [.25, .5].find(x => x >= Math.max(...bars.flat())) || 1;
    rows.forEach((row, i) => {
      row.classList.toggle("out", i >= kept.length);
      bars.forEach((list, n) => set(row.children[n + 1], {width: 140 * list[i] / full}));
      row.lastChild.textContent = fix(bars[1][i]);
    });
    ui.text("full", full);
    ui.text("k-value", k);
    set(ui.$("k"), {"aria-valuetext": k});
    ui.say(`Of ${gaps.length} tokens, ${kept.length} remain; the entropy is ${fix(-sum(kept.map(x => x && x * Math.log(x))))} nats, and “${rows[0].firstChild.textContent}” has ${fix(kept[0])}.`);
  };
  ui.all("input").forEach(node => ui.input(node.dataset.k, draw));
}
