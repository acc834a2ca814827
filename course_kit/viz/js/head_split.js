(el, data, ui) => {
  let head = 0, token = 0, zero;
  const parts = ui.all("[data-h]"), first = {}, draw = () => {
    parts.forEach(node => {
      const on = node.dataset.h == head;
      set(node, {"fill-opacity": on ? .4 : .07, "stroke-width": 2 * on});
      if (node.type) set(node, {"aria-pressed": on});
    });
    ui.all("[data-t]").forEach(node => node.style.display = node.dataset.t == token ? "" : "none");
    // outlines of the numbers that can change: those of a head, and those of the output; wide tables have no numbers
    ui.all("[data-z]").forEach(mark => {
      const {z, own} = mark.dataset, key = z[0] == "m" ? z : `n${token}.${z}`, node = ui.$(key),
        was = node && (first[key] ||= node.textContent),
        now = !zero ? was : own == head ? fix(0, z == key ? 2 : data.digits) : own ? was : data.without[token][head][parseInt(z)];
      if (node) node.textContent = now;
      mark.style.display = zero && (own == head || now != was) ? "" : "none";
    });
    ui.text("how", data.how[token][head]);
    ui.$("how").style.visibility = zero ? "hidden" : "";
    ui.say(data[zero ? "zeroed" : "said"][token][head]);
  };
  parts.forEach(node => node.onclick = () => { head = node.dataset.h; draw() });
  ui.press("zero", on => { zero = on; draw() });
  ui.input("token", value => { token = value; draw() });
}
