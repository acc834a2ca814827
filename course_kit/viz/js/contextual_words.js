(el, data, ui) => {
  const {places, drawn, near, told, labels, senses} = data, points = [...ui.$("points").children], leaders = ui.$("leaders").children, slider = ui.$("layer"),
    tell = i => {
      const [j, cosine] = near[slider.value][i];
      points.forEach((node, n) => node.classList.toggle("chosen", n == i));
      ui.say(`${i + 1}: ${labels[i]} (${senses[i]}). Nearest in layer ${slider.value}: ${j + 1}, ${labels[j]} (${senses[j]}), cosine ${cosine}.`);
    };
  ui.grid([points], (_, i) => tell(i));
  ui.input("layer", layer => {
    points.forEach((node, i) => {
      const [x, y] = drawn[layer][i];
      set(leaders[i], {d: `M${x} ${y}L${places[layer][i].join(" ")}`});
      node.style.transform = `translate(${x}px,${y}px)`;
    });
    ui.$("at").style.transform = `translate(${34 + 296 * layer / Math.max(places.length - 1, 1)}px)`;
    ui.say(told[layer]);
  });
}
