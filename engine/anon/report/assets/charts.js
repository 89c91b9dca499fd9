// The plain charts: sizes of groups, breach probabilities, loss per column, errors of queries, predictions, certainty, seconds.

function drawSizes(place, facts) {
  const { root, width, height } = box(place, 260, facts.label);
  const left = 52, right = width - 8, base = height - 44, top = 14;
  const most = Math.max(...facts.bins.map((bin) => bin.groups));
  const step = (right - left) / facts.bins.length;
  for (const at of ticks(most, 4)) {
    const y = base - (at / most) * (base - top);
    root.append(svg("path", { class: "rule", d: `M${left} ${y}H${right}` }), text(left - 8, y + 4, short(at), "end"));
  }
  let free = -1e9;
  facts.bins.forEach((bin, i) => {
    const tall = (bin.groups / most) * (base - top), x = left + i * step;
    const bar = svg("rect", { class: "bar", x: x + step * 0.08, y: base - tall, width: step * 0.84, height: Math.max(tall, bin.groups ? 1 : 0) });
    root.append(titled(bar, `${counted(bin.groups, "group")} of ${bin.name}: ${counted(bin.individuals, "individual")}`));
    const middle = x + step / 2, words = short(bin.low);
    if (middle - words.length * 4 > free) {
      root.append(text(middle, base + 16, words, "middle"));
      free = middle + words.length * 4 + 10;
    }
  });
  root.append(svg("path", { class: "axis", d: `M${left} ${base}H${right}` }), text((left + right) / 2, height - 8, "individuals in the group, from", "middle"));
}

// One row for each thing: a name, a bar or a dot, a number.
function rows(place, label, names, tall, heading) {
  const width = Math.max(260, place.clientWidth || 640), wide = width > 560;
  const room = Math.min(Math.max(...names.map((name) => name.length)) * 6.9 + 10, width * (wide ? 0.38 : 1));
  const above = heading ? 22 : 2, height = above + names.length * tall + 4;
  const drawn = box(place, height, label);
  return { ...drawn, left: wide ? room : 2, right: drawn.width - 62, room: wide ? room - 10 : drawn.width - 64, wide, above };
}

// A bar for each share, as wide as the chart at the `largest`, and a line at the bound of a share.
function drawShares(place, facts) {
  const tall = place.clientWidth > 560 ? 30 : 46, largest = facts.largest || 1;
  const at = rows(place, facts.label, facts.rows.map((row) => row.name), tall, false);
  facts.rows.forEach((row, i) => {
    const y = at.above + i * tall, bar = at.wide ? y + 6 : y + 20, across = at.right - at.left;
    at.root.append(
      text(at.wide ? at.left - 10 : 2, at.wide ? bar + 13 : y + 14, clipped(row.name, at.room), at.wide ? "end" : "start", "strong"),
      svg("rect", { class: "bar none", x: at.left, y: bar, width: across, height: 18, rx: 2 }),
      titled(svg("rect", { class: row.all ? "bar soft" : "bar", x: at.left, y: bar, width: across * (row.share / largest), height: 18, rx: 2 }), row.title),
      text(at.right + 8, bar + 13, percent(row.share), "start", "strong"),
    );
    if (row.bound === undefined) return;
    const x = at.left + across * (row.bound / largest);
    at.root.append(svg("path", { class: "bound", d: `M${x} ${bar - 4}V${bar + 22}` }));
  });
}

function drawBreach(place, facts) {
  const tall = place.clientWidth > 560 ? 26 : 42;
  const at = rows(place, facts.label, facts.rows.map((row) => row.name), tall, true), across = at.right - at.left;
  for (const mark of [0, 0.25, 0.5, 0.75, 1]) {
    const x = at.left + mark * across;
    at.root.append(svg("path", { class: "rule", d: `M${x} ${at.above - 4}V${at.height}` }), text(x, 12, percent(mark), "middle"));
  }
  facts.rows.forEach((row, i) => {
    const y = at.above + i * tall + (at.wide ? tall / 2 : 28), x = at.left + row.breach * across, end = at.left + row.c * across;
    at.root.append(
      text(at.wide ? at.left - 10 : 2, at.wide ? y + 4 : y - 12, clipped(row.name, at.room), at.wide ? "end" : "start", "strong"),
      svg("path", { class: "stem", d: `M${at.left} ${y}H${x}` }),
      svg("path", { class: "bound", d: `M${end} ${y - 8}V${y + 8}` }),
      titled(svg("circle", { class: row.safe ? "dot" : "dot bad", cx: x, cy: y, r: 5 }), row.title),
      text(at.right + 8, y + 4, row.text, "start", "strong"),
    );
  });
}

function drawShare(place, facts) {
  const { root, width, height } = box(place, 240, facts.label);
  const left = 52, right = width - 12, base = height - 42, top = 12;
  const x = (share) => left + share * (right - left), y = (share) => base - share * (base - top);
  for (const mark of [0, 0.25, 0.5, 0.75, 1]) {
    root.append(svg("path", { class: "rule", d: `M${left} ${y(mark)}H${right}` }), text(left - 8, y(mark) + 4, percent(mark), "end"));
    root.append(text(x(mark), base + 16, percent(mark), mark === 1 ? "end" : "middle"));
  }
  let line = `M${x(0)} ${y(1)}`;
  facts.above.forEach((share, i) => { line += `H${x(i / 100)}V${y(share)}`; });
  root.append(svg("path", { class: "area", d: `${line}V${base}H${left}Z` }), svg("path", { class: "curve", d: line }));
  root.append(svg("path", { class: "axis", d: `M${left} ${base}H${right}` }), text((left + right) / 2, height - 8, "share of its most frequent value, at least", "middle"));
}

function drawPieces(place, facts) {
  const { root, width, height } = box(place, 240, facts.label);
  const left = 52, right = width - 12, base = height - 42, top = 12, last = facts.curves[0].length - 1 || 1;
  const x = (pieces) => left + (pieces / last) * (right - left), y = (share) => base - share * (base - top);
  for (const mark of [0, 0.25, 0.5, 0.75, 1]) {
    root.append(svg("path", { class: "rule", d: `M${left} ${y(mark)}H${right}` }), text(left - 8, y(mark) + 4, percent(mark), "end"));
  }
  facts.curves.forEach((curve, kind) => {
    const line = curve.map((share, pieces) => `${pieces ? "L" : "M"}${x(pieces)} ${y(share)}`).join("");
    root.append(svg("path", { class: kind ? "curve dashed" : "curve", d: line }));
    curve.forEach((share, pieces) => {
      const words = `${counted(pieces, kind ? "negation" : "implication")}: ${percent(share)}`;
      root.append(titled(svg("circle", { class: "dot", cx: x(pieces), cy: y(share), r: 4 }), words));
    });
  });
  facts.curves[0].forEach((share, pieces) => root.append(text(x(pieces), base + 16, `${pieces}`, pieces === last ? "end" : "middle")));
  root.append(svg("path", { class: "axis", d: `M${left} ${base}H${right}` }), text((left + right) / 2, height - 8, "pieces of knowledge", "middle"));
}

function drawSeconds(place, facts) {
  const drawn = box(place, 62, facts.label);
  const whole = facts.rows.reduce((sum, row) => sum + row.seconds, 0) || 1;
  let x = 0;
  facts.rows.forEach((row, i) => {
    const wide = (row.seconds / whole) * drawn.width, words = `${row.name} ${row.text}`;
    drawn.root.append(titled(svg("rect", { class: `cell leaf k${i % 8}`, x, y: 4, width: wide, height: 26 }), words));
    if (wide > row.name.length * 7 + 8) drawn.root.append(text(x + 6, 21, row.name, "start", `t${i % 8}`));
    if (wide > row.text.length * 7) drawn.root.append(text(x + 2, 46, row.text));
    x += wide;
  });
}

const CHARTS = { groups: drawSizes, lost: drawShares, queries: drawShares, prediction: drawShares, breach: drawBreach, attacks: drawShare, disclosure: drawPieces, seconds: drawSeconds };
