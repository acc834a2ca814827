(el, {told, ends}, ui) => {
  const steps = ui.all(".step"), picks = steps.map(step => [...step.querySelectorAll(".pick")]),
    picked = node => node.ariaPressed == "true";
  // without a script, all steps are shown with what the search keeps
  steps.forEach((step, s) => {
    step.hidden = s;
    step.className = "step";
  });
  picks.forEach((nodes, s) => ui.grid(nodes.map(node => [node]), () => {}, i => {
    const next = steps[s + 1], node = nodes[i];
    // once the next step is seen, this one is done
    if (!next.hidden) return;
    node.ariaPressed = !picked(node);
    const won = nodes.filter(n => n.matches(".won")), left = won.length - nodes.filter(picked).length;
    if (next.hidden = left > 0) return ui.say(`${left} more to pick.`);
    steps[s].className += " told";
    next.parentNode.scrollLeft = next.offsetLeft;
    ui.say(`You picked ${won.filter(picked).length} of ${won.length}. ${told[s]}`);
  }));
  ui.input("penalty", a => {
    const scores = ends.map(([, n, total]) => total / n ** a), best = most(scores);
    scores.forEach((x, i) => ui.cell(ui.$("end" + i), +(i == best), fix(x)));
    ui.say(`“${ends[best][0]}” wins with ${fix(scores[best])}.`);
  });
}
