(el, data, ui) => {
  let open = data.open, shown = false, rule = "";
  const rows = data.queries, columns = data.keys, m = columns.length, preset = ui.$("preset"), size = ui.$("size"),
    digits = x => fix(x, data.digits),
    weights = i => softmax(data.scores[i].map((s, j) => open[i][j] ? s : -Infinity)),
    draw = () => {
      const empty = rows.filter((name, i) => {
        const w = weights(i);
        open[i].forEach((o, j) => {
          const node = ui.$(`m${i}.${j}`);
          ui.cell(node, o ? 0 : .7, o ? digits(data.scores[i][j]) : "×");
          set(node, {"aria-pressed": o});
          ui.cell(ui.$(`w${i}.${j}`), shown && w[j], shown ? digits(w[j]) : "?");
        });
        return !sum(w);
      });
      ui.text("empty", shown && empty[0] ? data.empty + empty.join(", ") + "." : "");
    },
    see = (i, j) => ui.say(`Query ${rows[i]}, key ${columns[j]}: ${open[i][j] ? "open" : "closed"}.` + (shown ?
      ` Weights of ${rows[i]}: ${weights(i).map((w, j) => columns[j] + " " + fix(w)).join(", ")}.` +
      (open[i].some(o => o) ? "" : " No key is open: torch.softmax would give NaN.") : "")),
    apply = () => {
      const k = +size.value;
      rule = preset.value;
      if (rule) open = open.map((row, i) => row.map((_, j) => {
        // how far the key lies before the query; the last query stands at the last key
        const back = i + m - rows.length - j, kept = rule < "p" ? 1 : j < m - k;
        return rule == "window" ? back >= 0 && back < k : !!kept && (!/causal/.test(rule) || back >= 0);
      }));
      draw();
    };
}
