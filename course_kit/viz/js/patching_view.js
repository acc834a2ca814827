(el, {patched, clean, other, places, tokens, others, runs, measure, low, high}, ui) => {
  const N = places.length,
    // the first place is at the bottom
    cells = ui.all("[role=row]").map(row => [...row.querySelectorAll("[role=gridcell]")]).filter(row => row[0]);
  ui.grid(cells, (i, j) => {
    const n = N - 1 - i, x = patched[n][j], share = (x - clean) / (other - clean);
    cells.flat().forEach(node => node.ariaSelected = node == cells[i][j]);
    ui.text("told", `In ${runs[0]}, the output of ${places[n]} at “${tokens[j]}” is replaced by what ${runs[1]} computes `
      + (tokens[j] == others[j] ? "there." : `at “${others[j]}”.`));
    ui.text("now", fix(x));
    ui.$("marker").style.transform = `translate(${50 + 240 * (share - low) / (high - low)}px)`;
    ui.say(sentence(places[n]) + ` at “${tokens[j]}”: ${measure} is ${fix(clean)} without the patch, ${fix(x)} with it, and ${fix(other)} in the other run: share ${fix(share)}.`);
  });
  const box = el.querySelector(".scroll");
  // says so where the map is wider than the page
  new ResizeObserver(() => box.parentNode.classList.toggle("wide", box.scrollWidth > box.clientWidth)).observe(box);
  // passing over the cells chooses none; Tab goes to the one that is chosen
  cells.flat().forEach(node => {
    node.onpointerenter = null;
    node.tabIndex = node.ariaSelected == "true" ? 0 : -1;
  });
}
