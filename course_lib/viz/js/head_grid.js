(el, data, ui) => {
  const {queries, keys, columns, packed, is} = data, K = keys.length, Q = queries.length, size = Q * K,
    [cells, nodes] = [".map g", ".heads g"].map(rows => ui.all(rows).map(row => [...row.children])),
    heads = nodes.flat(), values = packed ? unpack(packed) : data.exact,
    tell = (m, n) => m ? `, ${m.ariaLabel} ${fix(m.w[n], m.digits)}` : "",
    draw = () => {
      head.off = is.hide;
      const seen = heads.filter(m => !m.off);
      now = is.mean ? {
        ariaLabel: data.mean + seen.length, digits: data.digits,
        w: head.w.map((_, n) => sum(seen.map(m => m.w[n])) / seen.length || 0)
      } : head;
      cells.flat().forEach((node, n) => set(node, {
        "fill-opacity": now.w[n], "data-more": fix(now.w[n] - (kept || now).w[n], 1),
        role: "img", "aria-label": queries[n / K | 0] + " to " + keys[n % K] + tell(now, n) + tell(kept, n)
      }));
      heads.forEach(m => set(m, {"fill-opacity": m.off ? .9 : 0, "aria-pressed": m == head}));
      set(ui.$("hide"), {"aria-pressed": is.hide});
      // the first part is the whole output
      ui.all(".part").forEach((node, n) => node.style.display = n == (is.remove && heads.indexOf(head) + 1) ? "" : "none");
      ui.text("name", now.ariaLabel);
      ui.say(now.ariaLabel);
    };
  let head = heads[0], now, kept;
  heads.forEach((m, h) => { m.w = values.slice(h * size, h * size + size); m.off = false });
  if (packed) set(ui.$("small"), {d: values.map((v, n) =>
    `M${(n / size | 0) % columns * K + n % K} ${(n / size / columns | 0) * Q + (n / K | 0) % Q}h${v}`).join("")});
  ui.grid(cells, (i, j) => ui.say(cells[i][j].ariaLabel));
  ui.grid(nodes, () => {}, (i, j) => { head = nodes[i][j]; is.hide = head.off; draw() });
  for (const k in is) ui.press(k, on => {
    is[k] = on;
    if (k == "keep") {
      kept = on && now;
      ui.text("kept", "");
      if (on) ui.$("kept").append(ui.$("map").cloneNode(true));
    }
    draw();
  });
  draw();
}
