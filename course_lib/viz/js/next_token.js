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
      bars = [first(), kept], rows = ui.all(".token");
    rows.forEach((row, i) => {
      row.classList.toggle("out", i >= kept.length);
      // before the filters, and after; the last row is for all that have none
      bars.forEach((list, n) => {
        const x = sum(list.slice(i, i < shown ? i + 1 : 1e9));
        set(row.children[n + 1], {width: 140 * x});
        row.lastChild.textContent = fix(x);
      });
    });
    ui.text("k-value", k);
    set(ui.$("k"), {"aria-valuetext": k});
    ui.say(ui.text("remain", `${kept.length} of ${gaps.length} tokens remain,\nentropy ${fix(-sum(kept.map(x => x && x * Math.log(x))))} nats.`)
      + ` “${rows[0].firstChild.textContent}” has ${fix(kept[0])}.`);
  };
  ui.all("input").forEach(node => ui.input(node.dataset.k, draw));
}
