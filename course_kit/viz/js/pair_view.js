(el, data, ui) => {
  const {tokens, second, marks, names, shares} = data, L = tokens.length, all = unpack(data.packed),
    rows = [...ui.$("map").querySelectorAll("g")].map(row => [...row.children]), box = ui.$("head"),
    of = (i, j) => w[i * L + j], side = i => "AB"[+(i >= second)],
    link = (i, j) => `“${tokens[i]}” (${side(i)}) → “${tokens[j]}” (${side(j)}) ${fix(of(i, j))}`,
    draw = () => {
      const n = +box.value, share = shares[n];
      w = all.slice(n * L * L, (n + 1) * L * L);
      rows.forEach((row, i) => row.forEach((node, j) =>
        set(node, {"fill-opacity": of(i, j) ** .5, role: "img", "aria-label": link(i, j)})));
      ui.text("name", names[n]);
      share.forEach((x, k) => {
        set(ui.$("bar" + k), {width: .18 * x});
        ui.text("share" + k, fix(x / 1e3));
      });
      ui.$("links").replaceChildren(...[...w.keys()]
        .filter(p => side(p / L | 0) != side(p % L) && !marks.includes(p / L | 0) && !marks.includes(p % L))
        .sort((a, b) => fix(w[b]) - fix(w[a])).slice(0, 6).map(p => {
          const item = document.createElement("li");
          item.textContent = link(p / L | 0, p % L);
          return item;
        }));
      ui.say(`${n ? "In" : "On"} ${names[n]}, words of A put ${fix(share[1] / 1e3)} of their weight on words of B, and words of B ${fix(share[3] / 1e3)} on words of A.`);
    };
  let w;
  box.oninput = draw;
  draw();
  ui.press("across", on => ui.$("map").classList.toggle("across", on));
  ui.grid(rows, (i, j) => {
    ui.$("strongest").hidden = false;
    ui.say(link(i, j) + ".");
  });
}
