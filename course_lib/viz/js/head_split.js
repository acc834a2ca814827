(el, data, ui) => {
  let head = 0, token = 0;
  const parts = ui.all("[data-h]"), draw = () => {
    parts.forEach(node => {
      const on = node.dataset.h == head;
      set(node, {"fill-opacity": on ? .4 : .07, "stroke-width": 2 * on});
      if (node.type) set(node, {"aria-pressed": on});
    });
    ui.all("[data-t]").forEach(node => node.style.display = node.dataset.t == token ? "" : "none");
    ui.text("how", data.how[token][head]);
    ui.say(data.said[token][head]);
  };
  parts.forEach(node => node.onclick = () => { head = node.dataset.h; draw() });
  ui.input("token", value => { token = value; draw() });
}
