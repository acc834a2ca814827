(el, data, ui) => {
  const step = ui.$("step"), token = ui.$("token"), draw = () => {
    const at = step.value - 1, {name, state, code, shape} = data.steps[at], row = state[token.value],
      size = fix(Math.sqrt(dot(row, row)));
    ui.text("step-value", step.value);
    ui.text("code", code);
    ui.text("shape", "shape of all tokens " + shape);
    ui.text("norm", "length of this vector " + size);
    data.steps.forEach((_, i) => ui.cell(ui.$("box" + i), i == at ? .75 : .08));
    ui.all("[data-k^=bar]").forEach((bar, i) => {
      const x = 60 * (row[i] || 0) / data.top;
      set(bar, {x: 320 * (i + .1) / row.length, width: 256 / row.length, y: 70 - Math.max(x, 0), height: Math.abs(x)});
    });
    ui.say(`Step ${step.value}, ${name}: token ${data.tokens[token.value]} has length ${size}; all tokens together ${shape}.`);
  };
  step.oninput = token.oninput = draw;
}
