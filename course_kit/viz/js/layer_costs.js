(el, {window: w, kernel, lengths, widths, quantities, box: [left, right, top, bottom]}, ui) => {
  let counted = ui.$("projections").ariaPressed == "true", moves;
  const all = x => x.toLocaleString("en"), first = lengths[0], last = lengths.at(-1),
    // how many layers it takes to reach back from the last position to the first
    layers = (n, k, dilated) => {
      if (!dilated) return Math.ceil((n - 1) / (k - 1));
      for (moves = 0; k ** moves < n;) moves++;
      return moves;
    },
    // what each of the five layers costs
    costs = {
      operations: (n, d) => {
        const around = 8 * n * d * d;
        return [n, Math.min(n, w)].map(keys => 4 * n * d * keys + counted * around).concat(around, around, around);
      },
      "sequential steps": n => [4, 4, n, 1, 1],
      "longest path": n => [1, layers(n, w), n - 1, layers(n, kernel), layers(n, kernel, true)],
      "numbers kept": (n, d) => {
        const near = Math.min(n, w), past = (n + kernel - 1) * d;
        return [n * n + 5 * n * d, n * near + 5 * n * d + 2 * (near - 1) * d, 4 * n * d, past, past];
      }
    },
    draw = () => {
      const name = ui.$("quantity").value, [low, high, grid, ...ends] = quantities[name],
        n = lengths[ui.$("length").value], d = widths[ui.$("width").value],
        of = n => costs[name](n, d), here = of(n),
        x = n => left + (right - left) * Math.log2(n / first) / Math.log2(last / first),
        y = cost => bottom - (bottom - top) * (Math.log10(cost) - low) / (high - low),
        crossings = {};
      let crossed;
      here.forEach((cost, i) => {
        ui.text("cost" + i, all(cost));
        ui.text("times" + i, "× " + fix(cost / here[0]));
        set(ui.$("curve" + i), {points: lengths.map(n => x(n).toFixed(1) + "," + y(of(n)[i]).toFixed(1)).join(" ")});
        let a = first, b = last;
        const more = n => of(n)[0] > of(n)[i];
        if (more(a) || !more(b)) return;
        while (b - a > 1) { const middle = (a + b) >> 1; more(middle) ? b = middle : a = middle }
        crossings[a] = of(a)[0];
        if (i == 2) crossed = a;
      });
      const marks = Object.entries(crossings);
      [0, 1].forEach(i => {
        const node = ui.$("mark" + i), mark = marks[i];
        set(node, {visibility: mark ? "visible" : "hidden"});
        if (!mark) return;
        set(node, {transform: `translate(${x(mark[0]).toFixed(1)} ${y(mark[1]).toFixed(1)})`});
        node.lastChild.textContent = all(+mark[0]);
      });
      set(ui.$("here"), {transform: `translate(${x(n).toFixed(1)})`});
      set(ui.$("grid"), {d: grid});
      ui.text("name", name);
      ["low", "high"].forEach((key, i) => ui.text(key, ends[i]));
      [["length", n], ["width", d]].forEach(([key, size]) => {
        ui.text(key + "-value", all(size));
        set(ui.$(key), {"aria-valuetext": all(size)});
      });
      ui.say(`Length ${all(n)}, width ${all(d)}, ${name}: self-attention ${all(here[0])}, recurrent ${all(here[2])}; ` +
        (crossed ? `the two curves cross at length ${all(crossed)}.` : "the two curves do not cross."));
    };
  ["quantity", "length", "width"].forEach(key => ui.$(key).oninput = draw);
  ui.press("projections", on => { counted = on; draw() });
}
