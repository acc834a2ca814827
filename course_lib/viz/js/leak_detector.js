(el, data, ui) => {
  let model = "0", token = data.token;
  const inputs = ui.all(".input"), draw = () => {
    // everything is drawn; what belongs to this model, and to this model and token, is shown
    ui.all("[data-s]").forEach(node =>
      node.style.display = [model, model + "." + token].includes(node.dataset.s) ? "" : "none");
    inputs.forEach((node, j) => set(node, {"aria-pressed": j == token}));
    ui.say(data.said[model][token]);
  };
  ui.input("model", value => { model = value; draw() });
  ui.grid(inputs.map(node => [node]), () => {}, j => { token = j; draw() });
}
