(el, data, ui) => {
  const {q, k, H, names, second, marks, signs} = data, Q = q.length, K = k.length, P = names.length, ROW = 24,
    // one character up to 80 thousandths, two above, two for a run of zeros: see `encoded` of inspection_inputs.py
    decode = text => {
      const list = [], at = i => { const c = text.charCodeAt(i); return (c == 33 ? 60 : c == 32 ? 92 : c) - 35 };
      for (let i = 0; i < text.length; i++) {
        const a = at(i);
        if (a < 81) list.push(a);
        else if (a < 91) list.push(a * 92 - 7371 + at(++i));
        else list.push(...Array(at(++i) + 3).fill(0));
      }
      return list;
    },
    w = decode(data.w), scores = decode(data.scores), N = scores.length / P,
    of = (h, i, j) => w[((layer * H + h) * Q + i) * K + j],
    maps = ui.all(".maps button"), chips = ui.all(".chips [data-h]"), every = ui.$("every"), several = ui.$("several"),
    sides = ["q", "k"].map(side => [...ui.$(side).querySelectorAll("g")]),
    part = ui.$("part"), box = ui.$("lines"), by = ui.$("by"), least = ui.$("least"),
    rank = p => [...Array(N).keys()].sort((a, b) => p < 0 ? 0 : scores[b * P + p] - scores[a * P + p]),
    // lines that pass the filters
    seen = (i, j) => {
      const at = over || kept, wanted = part && part.value;
      return (!at || at[1] == (at[0] ? j : i)) && (!wanted || (i < second ? "A" : "B") + (j < second ? "A" : "B") == wanted);
    },
    draw = () => {
      const at = over || kept, head = layer * H + on[0], own = scores.slice(head * P, head * P + P), p = most(own);
      box.replaceChildren(...on.flatMap(h => {
        const found = {};
        for (let i = 0; i < Q; i++) for (let j = 0; j < K; j++) {
          const shade = (of(h, i, j) + 25) / 50 | 0;
          // many heads without a token are a tangle: only their strong lines
          if (shade && seen(i, j) && (at || on.length < 4 || of(h, i, j) > 499)) found[shade] = (found[shade] || "") + `M118 ${58 + ROW * i}L222 ${58 + ROW * j}`;
        }
        return Object.keys(found).map(shade => {
          const line = document.createElementNS(box.namespaceURI, "path");
          set(line, {class: "line", d: found[shade], "stroke-opacity": shade / 20, style: `stroke:oklch(.62 .17 ${360 * h / H})`});
          return line;
        });
      }));
      // a token is as dark as its weight under the chosen one
      sides.forEach((tokens, side) => tokens.forEach((node, n) => {
        const same = at && at[0] == side,
          value = at && !same && (side ? seen(at[1], n) : seen(n, at[1]))
            ? sum(on.map(h => side ? of(h, at[1], n) : of(h, n, at[1]))) / on.length / 1e3 : 0;
        ui.cell(node, value);
        node.classList.toggle("chosen", !!same && at[1] == n);
        node.lastChild.textContent = at && !same && on.length == 1 ? fix(value) : "";
      }));
      chips.forEach((chip, h) => chip.ariaPressed = on.includes(h));
      every.ariaPressed = on.length == H;
      maps.forEach((map, n) => map.ariaPressed = n / H >= layer && n / H < layer + 1 && on.includes(n % H));
      ui.text("name", title(head));
      names.forEach((_, p) => {
        const score = scores[head * P + p] / 1e3;
        set(ui.$("bar" + p), {width: 180 * score});
        ui.text("score" + p, fix(score));
      });
      const place = head * Q * K;
      if (at) ui.$("strongest").hidden = false;
      ui.$("links").replaceChildren(...[...Array(Q * K).keys()]
        .filter(n => !marks.includes(n % K) && !(data.own && n % (K + 1) == 0))
        .sort((a, b) => w[place + b] - w[place + a]).slice(0, 6).map(n => {
          const item = document.createElement("li");
          item.textContent = `“${q[n / K | 0]}” → “${k[n % K]}” ${fix(w[place + n] / 1e3)}`;
          return item;
        }));
      ui.say(at ? on.slice(0, 3).map(h => {
        const row = (at[0] ? q : k).map((name, n) => [at[0] ? of(h, n, at[1]) : of(h, at[1], n), name])
          .sort((a, b) => b[0] - a[0]).slice(0, on.length > 1 ? 1 : 3).map(([x, name]) => `“${name}” ${fix(x / 1e3)}`).join(", ");
        return `Head ${h + 1}: ` + (at[0] ? `“${k[at[1]]}” gets most from ` : `“${q[at[1]]}” looks most at `) + row + ".";
      }).join(" ") : on.length > 1 ? `Layer ${layer + 1} shows heads ${chips.flatMap((_, h) => on.includes(h) ? h + 1 : []).join(", ")}, and the bars of head ${on[0] + 1}`
        + (on.length > 3 ? "; lines start at 0.5 until a token is chosen." : ".")
        : `Layer ${layer + 1}, head ${on[0] + 1} ` + (own[p] < 150
          ? `follows none of the patterns; the highest score is ${fix(own[p] / 1e3)}, “${names[p]}”.`
          : `follows the pattern “${names[p]}” most (${fix(own[p] / 1e3)}).`));
    },
    title = n => `layer ${(n / H | 0) + 1}, head ${n % H + 1}`,
    // small maps: those with the score, best first
    sort = () => {
      const p = by.value == "" ? -1 : +by.value, low = p < 0 ? 0 : least.value * 1e3,
        order = rank(p).filter(n => p < 0 || scores[n * P + p] >= low), C = +ui.all(".maps")[0].dataset.c, rows = [];
      maps.forEach((map, n) => {
        map.hidden = !order.includes(n);
        map.dataset.t = `${(n / H | 0) + 1}·${n % H + 1}\n` +
          (p < 0 ? signs[n] : fix(scores[n * P + p] / 1e3).replace(/^0/, ""));
      });
      order.forEach((n, i) => { maps[n].parentNode.append(maps[n]); (rows[i / C | 0] ||= []).push(maps[n]) });
      ui.grid(rows, () => 0, (a, b) => {
        const n = maps.indexOf(rows[a][b]);
        open(n / H | 0, [n % H]);
      });
      least.disabled = p < 0;
      if (p >= 0) {
        const [best] = rank(p), told = ` ${title(best)} with ${fix(scores[best * P + p] / 1e3)}.`;
        ui.say(order.length ? `${order.length} of ${N} heads; most:` + told : `No head reaches ${least.value} for “${names[p]}”; the most has` + told);
      }
    },
    open = (l, heads) => {
      layer = l;
      on = heads;
      ui.$("layer").value = l;
      draw();
    };
  let {layer, on} = data, kept, over;
  chips.forEach((chip, h) => chip.onclick = e => {
    const rest = on.filter(x => x != h);
    // one head at least; the newest comes first
    open(layer, several.ariaPressed == "false" && !e.shiftKey ? [h] : on.includes(h) ? rest.length ? rest : on : [h, ...on]);
  });
  ui.press("several", yes => yes || open(layer, [on[0]]));
  every.onclick = () => open(layer, on.length == H ? [on[0]] : [on[0], ...Array(H).keys()].filter((h, i, list) => list.indexOf(h) == i));
  ui.$("layer").oninput = e => open(+e.target.value, on);
  if (part) part.oninput = draw;
  sides.forEach((tokens, side) => {
    ui.grid(tokens.map(node => [node]), i => { over = [side, i]; draw() }, i => {
      kept = kept && kept[0] == side && kept[1] == i ? null : [side, i];
      over = null;
      tokens.forEach((node, n) => node.ariaPressed = !!kept && n == i);
      sides[1 - side].forEach(node => node.ariaPressed = false);
      draw();
    });
    tokens.forEach(node => node.onpointerleave = node.onblur = () => { over = null; draw() });
  });
  if (by) {
    by.oninput = sort;
    ui.input("least", sort);
    sort();
  }
}
