(el, data, ui) => {
  // the values come as columns, one for each feature of the output
  const {query, key, value} = data, rows = query.map((_, i) => ui.all(`[data-k=c${i}]`)),
    minus = x => `${x}`.replace("-", "−"), short = x => minus(+x.toFixed(3)), num = x => x < 0 ? `(${short(x)})` : short(x),
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
  // the cell looked at last: its query, and its place among the numbers of that query
  let at = 0, cell = 0;
  // a number is called by its name and what it shows
  const name = node => node.ariaLabel.split(":")[0];
  const tell = (i, j) => {
    const [x, f] = steps(query[at = i])[cell = j];
    ui.say([name(rows[i][j]), f, fix(x)].join(" = "));
  };
  ui.grid(rows, tell);
  el.oninput = el.onchange = ({type, target: t}) => {
    // an empty or unfinished field counts as 0; when it is left it shows what counts
    const [what, i, j] = t.dataset.k.split(" "), numbers = data[what][i], fits = Math.abs(t.value) <= 10, K = key.length;
    t.ariaInvalid = type == "input" && !fits;
    if (type == "change") return t.value = numbers[j];
    if (!fits) return ui.say(`The number must lie between −10 and 10: ${minus(t.value)} is not used, and ${t.ariaLabel} stays ${minus(numbers[j])}.`);
    numbers[j] = +t.value;
    rows.map((row, i) => steps(query[i]).map(([x, , w = 0], j) => {
      row[j].classList.toggle("changed", row[j].textContent != fix(x));
      ui.cell(row[j], w, fix(x));
      row[j].ariaLabel = `${name(row[j])}: ${fix(x)}`;
    }));
    // the formula looked at last, or its neighbour that contains the new number
    tell(what[0] == "q" ? +i : at, what[0] == "v" ? 3 * K + +i : what[0] == "k" && cell < 3 * K ? cell - cell % K + +i : cell);
  };
}
