(el, data, ui) => {
  // the values come as columns, one for each feature of the output
  const {query, key, value} = data, rows = query.map((_, i) => ui.all(`[data-k=c${i}]`)),
    num = x => x < 0 ? `(${+fix(x)})` : +fix(x),
    sums = (a, b) => [dot(a, b), a.map((x, i) => num(x) + "·" + num(b[i])).join(" + ")],
    // all numbers of one query, from its scores s over the scaled t and the weights w to its output: each with its
    // formula, and the weights with their shade
    steps = q => {
      const s = key.map(k => sums(q, k)), d = q.length, t = s.map(([x]) => x / d ** .5), w = softmax(t), e = t.map(x => "e^" + num(x));
      return [
        ...s,
        ...t.map((x, j) => [x, num(s[j][0]) + " / √" + d]),
        ...w.map((x, j) => [x, `${e[j]} / (${e.join(" + ")})`, x]),
        ...value.map(v => sums(w, v))
      ];
    };
  ui.grid(rows, (i, j) => {
    const [x, f] = steps(query[i])[j];
    ui.say([rows[i][j].ariaLabel, f, fix(x)].join(" = "));
  });
  el.oninput = el.onchange = ({type, target: t}) => {
    // an empty or unfinished field counts as 0; when it is left it shows what counts
    const [name, i, j] = t.dataset.k.split(" "), x = data[name][i][j] = Math.max(-10, Math.min(10, t.value));
    if (type == "change") t.value = x;
    rows.map((row, i) => steps(query[i]).map(([x, , w = 0], j) => ui.cell(row[j], w, fix(x))));
    // the formula looked at last
    ui.all("[tabindex='0']")[0].onfocus();
  };
}
