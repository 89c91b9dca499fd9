// The tree of cuts as an icicle: a row for each cut below the other, parts as wide as their individuals. Parts too
// narrow to see are drawn as one; looking into a part makes it as wide as the page.

const ROW = 30, DEEPEST = 12, NARROW = 2.5;

class CutMap {
  constructor(facts) {
    this.facts = facts;
    this.nodes = facts.nodes.map((node, i) => ({ ...node, i, children: [] }));
    for (const node of this.nodes) if (node.above !== undefined) this.nodes[node.above].children.push(node);
    this.place = document.getElementById("map");
    this.root = this.at = this.nodes[0];
    const on = (id, act) => document.getElementById(id).addEventListener("click", act);
    on("map-in", () => this.lookInto(this.at));
    on("map-out", () => this.stepOut());
    on("map-all", () => this.lookInto(this.nodes[0]));
    this.place.addEventListener("keydown", (event) => this.key(event));
    this.place.addEventListener("click", (event) => this.click(event));
    this.legend();
    this.draw();
  }

  legend() {
    const used = [...new Set(this.nodes.filter((node) => node.split !== undefined).map((node) => node.split))].sort((a, b) => a - b);
    const item = (cls, words) => html("li", {}, svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("rect", { class: cls, width: 16, height: 16, rx: 3 })), words);
    const items = used.map((column) => item(`k${column % 8}`, `cut by ${this.facts.columns[column]}`));
    document.getElementById("map-legend").replaceChildren(...items, item("kg", "a group, or several"), item("kn", "too narrow to draw"));
  }

  above(node) {
    return node.above === undefined ? null : this.nodes[node.above];
  }

  name(node) {
    const above = this.above(node);
    if (!above) return "the whole table";
    const column = this.facts.columns[above.split];
    if (node.together) return `${number.format(node.together)} small parts by ${column}`;
    return "label" in node ? `${column} ${node.label === null ? "missing" : node.label}` : `${column}, part ${above.children.indexOf(node) + 1} of ${above.children.length}`;
  }

  words(node) {
    const share = percent(node.individuals / this.nodes[0].individuals), people = `${counted(node.individuals, "individual")} (${share})`;
    if (node.group !== undefined) return `${this.name(node)}: group ${number.format(node.group)} in the order of the release, ${people}.`;
    const cut = node.split === undefined ? ", not drawn one by one" : `, cut by ${this.facts.columns[node.split]} into ${node.children.length}`;
    return `${this.name(node)}: ${people} in ${counted(node.groups, "group")}, the smallest has ${number.format(node.smallest)}${cut}.`;
  }

  draw() {
    const width = Math.max(260, this.place.clientWidth || 640), rects = [];
    const lay = (node, x, wide, depth) => {
      rects.push({ node, x, wide, depth });
      if (depth + 1 >= DEEPEST) return;
      let from = x, narrow = 0;
      for (const child of [...node.children, null]) {
        const own = child ? (child.individuals / node.individuals) * wide : NARROW;
        if (own < NARROW) { narrow += own; from += own; continue; }
        if (narrow) rects.push({ node: null, x: from - narrow, wide: narrow, depth: depth + 1 });
        if (child) lay(child, from, own, depth + 1);
        from += own;
        narrow = 0;
      }
    };
    lay(this.root, 0, width, 0);
    const deep = Math.max(...rects.map((rect) => rect.depth)) + 1;
    const { root } = box(this.place, deep * ROW + 2, `${this.words(this.root)} ${rects.length} parts are drawn.`);
    for (const { node, x, wide, depth } of rects) {
      if (node) this.cell(root, node, x, wide, depth);
      else root.append(titled(svg("rect", { class: "kn", x, y: depth * ROW + 1, width: wide, height: ROW - 1 }), "parts too narrow to draw: look into the one above"));
    }
    this.describe();
  }

  cell(root, node, x, wide, depth) {
    const colour = node.split === undefined ? "g" : node.split % 8, y = depth * ROW + 1;
    const rect = svg("rect", { class: `cell k${colour}${node.children.length ? "" : " leaf"}${node === this.at ? " at" : ""}`, x: x.toFixed(2), y, width: wide.toFixed(2), height: ROW - 1, "data-node": node.i });
    root.append(titled(rect, this.words(node)));
    if (wide < 46) return;
    const words = node === this.root ? `${this.name(node)}: ${counted(node.individuals, "individual")}` : "label" in node ? String(node.label) : node.group !== undefined ? `#${node.group}` : short(node.individuals);
    const label = text(x + 6, y + 19, clipped(words, wide - 10), "start", `t${colour}`);
    label.setAttribute("pointer-events", "none");
    root.append(label);
  }

  describe() {
    document.getElementById("map-summary").textContent = this.words(this.at);
    document.getElementById("map-in").disabled = !this.at.children.length || this.at === this.root;
    for (const id of ["map-out", "map-all"]) document.getElementById(id).disabled = this.root === this.nodes[0];
  }

  lookInto(node) {
    if (!node.children.length) return;
    this.root = this.at = node;
    this.draw();
  }

  stepOut() {
    const above = this.above(this.root);
    if (above) { this.at = this.root; this.root = above; this.draw(); }
  }

  click(event) {
    const found = event.target.closest("[data-node]");
    if (!found) return;
    const node = this.nodes[Number(found.dataset.node)];
    if (node === this.root) { this.stepOut(); return; }
    this.at = node;
    if (node.children.length) this.lookInto(node);
    else this.draw();
  }

  key(event) {
    const above = this.above(this.at), beside = above ? above.children : [], place = beside.indexOf(this.at);
    const next = {
      ArrowLeft: this.at === this.root ? null : beside[place - 1], ArrowRight: this.at === this.root ? null : beside[place + 1],
      ArrowUp: this.at === this.root ? null : above, ArrowDown: this.at.children[0],
    };
    if (event.key in next) { if (next[event.key]) { this.at = next[event.key]; this.draw(); } }
    else if (event.key === "Enter" || event.key === " ") this.lookInto(this.at);
    else if (event.key === "Escape") this.stepOut();
    else return;
    event.preventDefault();
  }

  redraw() {
    this.draw();
  }
}
