(el, data, ui) => {
  const {queries, keys, columns, packed, is} = data, K = keys.length, Q = queries.length, size = K * Q, twin = ui.$("kept"),
    [cells, nodes] = [".map g", ".heads g"].map(rows => ui.all(rows).map(row => [...row.children])),
    heads = nodes.flat(), values = data.exact || unpack(packed),
    tell = (m, n) => m ? `, ${m.ariaLabel}: ${fix(m.w[n], m.digits)}` : "",
    draw = () => {
      if (is.keep) kept ||= (twin.append(ui.$("map").cloneNode(true)), now);
      else kept = twin.textContent = "";
      now = is.mean ? {
        ariaLabel: `${data.mean} ${heads.length} head` + (heads[1] ? "s" : ""), digits: data.digits,
        w: head.w.map((_, n) => sum(heads.map(m => m.w[n])) / heads.length)
      } : head;
      cells.flat().forEach((node, n) => set(node, {
        // what is less than before is as strong as it was
        "fill-opacity": Math.max(now.w[n], kept ? kept.w[n] : 0), "data-more": fix(now.w[n] - (kept || now).w[n], 1),
        role: "img", "aria-label": queries[n / K | 0] + " to " + keys[n % K] + tell(now, n) + tell(kept, n)
      }));
      heads.forEach(m => set(m, {role: "button", "aria-pressed": m == head}));
      // the first part is the whole output
      const part = is.remove ? heads.indexOf(head) + 1 : 0;
      ui.all(".part").forEach((node, n) => node.hidden = n != part);
      const shown = now.w.map(w => fix(w, now.digits));
      ui.text("name", now.ariaLabel);
      ui.say(data.moved[part] || `Largest weights, ${now.ariaLabel}: ` + [...shown.keys()].sort((a, b) => shown[b] - shown[a]).slice(0, 3)
        .map(n => `${queries[n / K | 0]} to ${keys[n % K]} ${shown[n]}`).join(", ") + ".");
    };
  let head = heads[0], now, kept;
  // many maps: a stroke for each weight, as long as it says
  packed && set(ui.$("small"), {d: values.map((v, n) =>
    `M${(n / size | 0) % columns * K + n % K} ${(n / size / columns | 0) * Q + (n / K | 0) % Q}h${v}`).join("")});
  heads.forEach(m => m.w = values.splice(0, size));
  ui.grid(cells, (i, j) => ui.say(cells[i][j].ariaLabel));
  ui.grid(nodes, () => 0, (i, j) => { head = nodes[i][j]; draw() });
  for (const k in is) ui.press(k, on => {
    // no head is missing from an average
    const other = {mean: "remove", remove: "mean"}[k];
    is[k] = on;
    if (other in is) ui.$(other).ariaPressed = is[other] = false;
    draw();
  });
  draw();
}
