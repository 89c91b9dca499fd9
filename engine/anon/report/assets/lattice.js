// The lattice: a band for each height, the least general at the bottom, a dot for each combination of levels. Of a large
// lattice only the number of safe ones of each height.

const GAP = 14;

class LatticeMap {
  constructor(facts) {
    this.facts = facts;
    this.place = document.getElementById("lattice-map");
    this.nodes = facts.safe ? this.listed() : [];
    this.rows = facts.heights.map(() => []);
    for (const node of this.nodes) this.rows[node.height].push(node);
    this.at = this.nodes.find((node) => node.kind === "released") || null;
    this.place.addEventListener("keydown", (event) => this.key(event));
    this.place.addEventListener("click", (event) => this.click(event));
    this.legend();
    this.draw();
  }

  listed() {
    const tops = this.facts.levels, marked = new Map();
    for (const each of this.facts.minimal) marked.set(each.join(), "minimal");
    marked.set(this.facts.chosen.join(), "released");
    return [...this.facts.safe].map((safe, i) => {
      const levels = [];
      let rest = i;
      for (const top of [...tops].reverse()) {
        levels.unshift(rest % (top + 1));
        rest = Math.floor(rest / (top + 1));
      }
      const kind = marked.get(levels.join()) || (safe === "1" ? "safe" : "unsafe");
      return { i, levels, kind, height: levels.reduce((sum, level) => sum + level, 0) };
    });
  }

  legend() {
    const kinds = { released: "released", minimal: "minimal: safe, and nothing below is", safe: "safe", unsafe: "not safe" };
    const bars = { safe: "safe", unsafe: "not safe" };
    const items = Object.entries(this.nodes.length ? kinds : bars).map(([kind, words]) => html("li", {}, svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, this.mark(8, 8, kind, kind === "released" ? 7 : 5)), words));
    document.getElementById("lattice-legend").replaceChildren(...items);
  }

  mark(x, y, kind, r) {
    const cls = `node ${kind}`;
    return kind === "released" ? svg("path", { class: cls, d: diamond(x, y, r * 1.15) }) : kind === "minimal" ? svg("rect", { class: cls, x: x - r, y: y - r, width: 2 * r, height: 2 * r }) : svg("circle", { class: cls, cx: x, cy: y, r });
  }

  words(node) {
    const above = node.levels.map((level, i) => level && `${this.facts.columns[i]}: ${this.facts.names[i][level]}`).filter(Boolean);
    const kind = { released: "released", minimal: "minimal", safe: "safe, but not minimal", unsafe: "not safe" }[node.kind];
    return `${above.length ? above.join(", ") : "every column unchanged"}: ${kind}.`;
  }

  draw() {
    if (!this.nodes.length) { this.drawHeights(); return; }
    const room = Math.max(260, this.place.clientWidth || 640) - 40, step = this.nodes.length > 400 ? 9 : 16, r = step * 0.33;
    const most = Math.floor(room / step), lines = this.rows.map((row) => Math.ceil(row.length / most));
    const { root, height } = box(this.place, lines.reduce((sum, count) => sum + count * step + GAP, 30), this.facts.label);
    let below = height - 24;
    this.rows.forEach((row, h) => {
      const across = Math.ceil(row.length / lines[h]);
      root.append(text(0, below + 4 - ((lines[h] - 1) * step) / 2, h));
      row.forEach((node, i) => {
        const line = Math.floor(i / across), own = Math.min(across, row.length - line * across);
        node.x = 40 + room / 2 + ((i % across) - (own - 1) / 2) * step;
        node.y = below - line * step;
      });
      below -= lines[h] * step + GAP;
    });
    if (this.at) for (const other of this.neighbours(this.at)) root.append(svg("path", { class: "link", d: `M${this.at.x} ${this.at.y}L${other.x} ${other.y}` }));
    for (const kind of ["unsafe", "safe", "minimal", "released"]) {
      for (const node of this.nodes.filter((each) => each.kind === kind)) {
        const dot = this.mark(node.x, node.y, kind, kind === "minimal" || kind === "released" ? r * 1.35 : r);
        if (node === this.at) dot.classList.add("at");
        dot.setAttribute("data-node", node.i);
        root.append(titled(dot, this.words(node)));
      }
    }
    root.append(text(0, height - 2, "height: steps of generalization, all columns together"));
    if (this.at) document.getElementById("lattice-summary").textContent = this.words(this.at);
  }

  drawHeights() {
    const { root, width } = box(this.place, this.facts.heights.length * 22 + 4, this.facts.label);
    const most = Math.max(...this.facts.heights.map((row) => row.nodes));
    [...this.facts.heights].reverse().forEach((row, i) => {
      const y = i * 22 + 3, wide = width - 150, h = this.facts.heights.length - 1 - i;
      root.append(text(22, y + 13, h, "end"), svg("rect", { class: "node", x: 30, y, width: (row.nodes / most) * wide, height: 16 }));
      root.append(titled(svg("rect", { class: "node safe", x: 30, y, width: (row.safe / most) * wide, height: 16 }), `height ${h}: ${row.safe} of ${row.nodes} safe`), text(36 + (row.nodes / most) * wide, y + 13, `${short(row.safe)} of ${short(row.nodes)}`));
    });
  }

  neighbours(node) {
    const near = (a, b) => a.levels.reduce((sum, level, i) => sum + Math.abs(level - b.levels[i]), 0) === 1;
    return [...(this.rows[node.height - 1] || []), ...(this.rows[node.height + 1] || [])].filter((other) => near(node, other));
  }

  click(event) {
    const found = event.target.closest("[data-node]");
    if (found) { this.at = this.nodes[Number(found.dataset.node)]; this.draw(); }
  }

  key(event) {
    if (!this.at) return;
    const row = this.rows[this.at.height], place = row.indexOf(this.at), near = this.neighbours(this.at);
    const next = {
      ArrowLeft: row[place - 1], ArrowRight: row[place + 1],
      ArrowUp: near.find((other) => other.height > this.at.height), ArrowDown: near.find((other) => other.height < this.at.height),
    };
    if (!(event.key in next)) return;
    if (next[event.key]) { this.at = next[event.key]; this.draw(); }
    event.preventDefault();
  }

  redraw() {
    this.draw();
  }
}
