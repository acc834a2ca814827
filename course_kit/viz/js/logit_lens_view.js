(el, {names, best, rank, own, rows, read, goals, what}, ui) => {
  const N = rows.length, short = text => text.length > 16 ? text.slice(0, 15) + "…" : text,
    // the first layer is at the bottom
    cells = ui.all("[role=row]").map(row => [...row.querySelectorAll("[role=gridcell]")]).filter(row => row[0]),
    bar = (key, chance) => {
      set(ui.$(key), {width: .128 * chance});
      ui.text(key + "-value", fix(chance / 1e3));
    },
    choose = (i, j) => {
      const n = N - 1 - i, list = best[n][j], at = `${rows[n]} at “`;
      cells.flat().forEach(node => node.ariaSelected = node == cells[i][j]);
      ui.text("at", at + short(read[j]) + "”");
      list.forEach(([token, chance], k) => {
        ui.text("name" + k, short(names[token]));
        bar("best" + k, chance);
      });
      ui.text("goal", `“${short(goals[j])}”, ${what}`);
      rows.forEach((_, m) => {
        ui.text("rank" + m, "rank " + rank[m][j]);
        bar("own" + m, own[m][j]);
      });
      set(ui.$("frame"), {y: 37 + 24 * i});
      ui.say(sentence(at) + `${read[j]}”: ` + list.map(([token, chance]) => `“${names[token]}” ${fix(chance / 1e3)}`).join(", ")
        + `. “${goals[j]}”, ${what}, has rank ${rank[n][j]} and probability ${fix(own[n][j] / 1e3)} here.`);
    };
  ui.grid(cells, choose);
  const box = el.querySelector(".scroll");
  // says so where the map is wider than the page
  new ResizeObserver(() => box.parentNode.classList.toggle("wide", box.scrollWidth > box.clientWidth)).observe(box);
  // passing over the cells chooses none; Tab goes to the one that is chosen
  cells.flat().forEach(node => {
    node.onpointerenter = null;
    node.tabIndex = node.ariaSelected == "true" ? 0 : -1;
  });
}
