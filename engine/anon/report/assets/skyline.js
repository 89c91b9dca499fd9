// The knowledge skyline of a value: the safe region as a terraced solid, a slice through it, and curves. l is upwards, so
// that each level is a slab on the one below it; a level that was not computed is drawn as the next higher one.

const NAMES = { l: "values ruled out (l)", k: "people known (k)", m: "relatives (m)" };

// The largest safe m for each l and k, as steps; nothing beyond.
class Region {
  constructor(skyline) {
    this.levels = skyline.levels;
    this.most = { l: 0, k: 0, m: 0 };
    for (const { l, stairs } of this.levels) {
      this.most.l = Math.max(this.most.l, l);
      for (const [k, m] of stairs) {
        this.most.k = Math.max(this.most.k, k);
        this.most.m = Math.max(this.most.m, m);
      }
    }
  }

  stairs(l) {
    const level = this.levels.find((each) => each.l >= l);
    return level ? level.stairs : [];
  }

  // The largest safe second number for each first one, with an axis fixed: pairs as in `stairs`.
  slice(axis, at) {
    if (axis === "l") return this.stairs(at);
    const found = [];
    for (const { l, stairs } of this.levels) {
      const fits = axis === "k" ? stairs.filter(([k]) => k >= at).map(([, m]) => m) : stairs.filter(([, m]) => m >= at).map(([k]) => k);
      if (fits.length) found.push([l, Math.max(...fits)]);
    }
    return found;
  }
}

class SkylineView {
  constructor(values) {
    this.values = values;
    this.azimuth = -0.75;
    this.elevation = 0.6;
    this.fixed = "l";
    this.at = 0;
    this.solid = document.getElementById("skyline-solid");
    this.fill("skyline-value", values.map((value) => value.name));
    this.listen();
    this.choose(0);
  }

  fill(id, names) {
    document.getElementById(id).replaceChildren(...names.map((name, i) => html("option", { value: i }, name)));
  }

  listen() {
    const on = (id, kind, act) => document.getElementById(id).addEventListener(kind, act);
    on("skyline-value", "change", (event) => this.choose(Number(event.target.value)));
    on("skyline-confidence", "change", (event) => this.show(Number(event.target.value)));
    on("slice-axis", "change", (event) => { this.fixed = event.target.value; this.at = 0; this.ready(); });
    on("slice-at", "input", (event) => { this.at = Number(event.target.value); this.draw(); });
    for (const button of document.querySelectorAll("[data-turn]")) button.addEventListener("click", () => this.turn(button.dataset.turn));
    this.solid.addEventListener("keydown", (event) => this.key(event));
    this.solid.addEventListener("pointerdown", (event) => { this.last = [event.clientX, event.clientY]; this.solid.setPointerCapture(event.pointerId); this.solid.classList.add("turning"); });
    this.solid.addEventListener("pointermove", (event) => this.drag(event));
    for (const kind of ["pointerup", "pointercancel"]) this.solid.addEventListener(kind, () => { this.last = null; this.solid.classList.remove("turning"); });
  }

  drag(event) {
    if (!this.last) return;
    const [x, y] = this.last;
    this.last = [event.clientX, event.clientY];
    this.rotate((event.clientX - x) * 0.01, (event.clientY - y) * 0.008);
  }

  key(event) {
    const turns = { ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down" };
    const slide = { PageUp: 1, PageDown: -1 }[event.key];
    if (turns[event.key]) this.turn(turns[event.key]);
    else if (slide) { this.at = Math.min(Math.max(this.at + slide, 0), this.region.most[this.fixed]); this.ready(); }
    else return;
    event.preventDefault();
  }

  turn(where) {
    this.rotate(...{ left: [-0.2, 0], right: [0.2, 0], up: [0, 0.12], down: [0, -0.12] }[where]);
  }

  rotate(around, up) {
    this.azimuth += around;
    this.elevation = Math.min(Math.max(this.elevation + up, 0.12), 1.45);
    this.drawSolid();
  }

  choose(index) {
    this.value = this.values[index];
    this.fill("skyline-confidence", this.value.skylines.map((each) => percent(each.confidence)));
    const own = this.value.skylines.findIndex((each) => each.asked.length);
    this.show(Math.max(own, 0));
    this.drawCurves();
  }

  show(index) {
    document.getElementById("skyline-confidence").value = index;
    this.skyline = this.value.skylines[index];
    this.region = new Region(this.skyline);
    this.at = 0;
    this.describe();
    this.table();
    this.ready();
  }

  ready() {
    const slider = document.getElementById("slice-at");
    slider.max = Math.max(this.region.most[this.fixed], 0);
    slider.disabled = slider.max === "0";
    slider.value = this.at;
    document.getElementById("slice-axis").value = this.fixed;
    this.draw();
  }

  describe() {
    const { confidence, beyond, levels, complete } = this.skyline, sure = percent(confidence);
    const most = ["l", "k", "m"].filter((axis) => beyond[axis]).map((axis) => `${beyond[axis].most === null ? "any number of" : `up to ${number.format(beyond[axis].most)}`} ${NAMES[axis]}`);
    const words = levels.length
      ? `With one kind of knowledge alone an adversary stays less than ${sure} sure with ${most.slice(0, -1).join(", ")} or ${most.at(-1)}.`
      : `An adversary who only finds the group of a person is already at least ${sure} sure.`;
    const more = complete ? "" : " Large numbers are shown in steps; between two steps the safe region may be a little larger than drawn.";
    document.getElementById("skyline-summary").textContent = words + more;
    const sentences = Object.values(beyond).filter((each) => each.sentence).map((each) => html("li", {}, each.sentence));
    document.getElementById("skyline-beyond").replaceChildren(html("ul", {}, ...sentences));
  }

  table() {
    const head = html("tr", {}, ...["values ruled out (l)", "people known, up to (k)", "relatives, up to (m)"].map((name) => html("th", { scope: "col", class: "n" }, name)));
    const body = this.skyline.levels.flatMap(({ l, stairs }) => stairs.map((pair) => html("tr", {}, ...[l, ...pair].map((each) => html("td", { class: "n" }, number.format(each))))));
    document.getElementById("skyline-table").replaceChildren(html("caption", {}, `What is safe for ${this.value.name} at ${percent(this.skyline.confidence)}`), html("thead", {}, head), html("tbody", {}, ...body));
  }

  draw() {
    this.drawSolid();
    this.drawSlice();
  }

  // The axes reach beyond the region and the points of the config.
  reach(axis) {
    const asked = this.skyline.asked.map((point) => point[axis]);
    return Math.max(this.region.most[axis], ...asked, 1) + 1;
  }

  scale(axis) {
    const largest = this.reach(axis), found = scale(largest);
    return { ...found, marks: found.marks.filter((mark) => mark < largest) };
  }

  drawSolid() {
    const { root, width, height } = box(this.solid, Math.max(300, Math.min(420, this.solid.clientWidth * 0.8)), this.words());
    const scales = Object.fromEntries(["l", "k", "m"].map((axis) => [axis, this.scale(axis)]));
    const project = this.camera(width, height, scales), at = (l, k, m) => project(scales.k.place(k), scales.m.place(m), scales.l.place(l));
    this.drawFloor(root, project, scales, at);
    this.region.levels.forEach((level, i) => {
      const below = i ? this.region.levels[i - 1].l + 1 : 0;
      this.drawSlab(root, level, below, i, at);
    });
    this.drawAsked(root, at);
    this.legend(scales);
  }

  words() {
    const { l, k, m } = this.region.most;
    return this.region.levels.length ? `Safe region of ${this.value.name} at ${percent(this.skyline.confidence)}: up to ${l} values ruled out, ${k} people known, ${m} relatives, not all at once.` : "No knowledge is safe.";
  }

  // A view from this side that fits what is drawn into the box.
  camera(width, height, scales) {
    const turn = [Math.cos(this.azimuth), Math.sin(this.azimuth)], rise = [0.9 * Math.cos(this.elevation), Math.sin(this.elevation)];
    const far = (x, y) => x * turn[1] + y * turn[0], flat = (x, y, z) => [x * turn[0] - y * turn[1], -z * rise[0] - far(x, y) * rise[1]];
    const seen = this.extent(scales).map((point) => flat(...point));
    const range = (axis) => [Math.min(...seen.map((point) => point[axis])), Math.max(...seen.map((point) => point[axis]))];
    const [[left, right], [top, bottom]] = [range(0), range(1)];
    const size = Math.min((width - 84) / (right - left), (height - 66) / (bottom - top));
    const place = ([x, y]) => [width / 2 + (x - (left + right) / 2) * size, height / 2 - 4 + (y - (top + bottom) / 2) * size];
    const project = (x, y, z) => [...place(flat(x, y, z)), far(x, y)];
    this.faces = (x, y) => far(x, y) < -1e-6;
    return Object.assign(project, { far });
  }

  // Points that must be seen: the floor, the foot of the axis upwards and its end, the tops of the slabs.
  extent(scales) {
    const floor = [[0, 0], [1, 0], [0, 1], [1, 1]], tops = this.region.levels.flatMap(({ l, stairs }) => {
      const high = scales.l.place(l + 1);
      return [[0, 0, high], [scales.k.place(stairs.at(-1)[0] + 1), 0, high], [0, scales.m.place(stairs[0][1] + 1), high]];
    });
    return [...floor.map(([x, y]) => [x, y, 0]), [...this.corner(floor), 1], ...tops];
  }

  // The corner of the floor that is furthest to the left.
  corner(corners) {
    const right = ([x, y]) => x * Math.cos(this.azimuth) - y * Math.sin(this.azimuth);
    return corners.reduce((found, each) => (right(each) < right(found) ? each : found));
  }

  drawFloor(root, project, scales, at) {
    const path = (points) => `M${points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}`;
    root.append(svg("path", { class: "grid", d: `${path([project(0, 0, 0), project(1, 0, 0), project(1, 1, 0), project(0, 1, 0)])}Z` }));
    for (const mark of scales.k.marks) root.append(svg("path", { class: "grid", d: path([project(scales.k.place(mark), 0, 0), project(scales.k.place(mark), 1, 0)]) }));
    for (const mark of scales.m.marks) root.append(svg("path", { class: "grid", d: path([project(0, scales.m.place(mark), 0), project(1, scales.m.place(mark), 0)]) }));
    this.axis(root, project, "k", scales.k, (x, y) => [x, y], "m");
    this.axis(root, project, "m", scales.m, (x, y) => [y, x], "k");
    const corner = this.corner([[0, 1], [1, 0], [0, 0], [1, 1]]);
    root.append(svg("path", { class: "frame", d: path([project(...corner, 0), project(...corner, 1)]) }));
    for (const mark of scales.l.marks) {
      const [x, y] = project(...corner, scales.l.middle(mark));
      root.append(text(x - 7, y + 4, number.format(mark), "end"));
    }
    const [x, y] = project(...corner, 1);
    root.append(text(x - 4, y - 10, "l", "middle", "strong"));
  }

  // Numbers along the nearer edge of the floor.
  axis(root, project, name, own, place) {
    const side = project.far(...place(0.5, 0)) < project.far(...place(0.5, 1)) ? -0.06 : 1.06;
    for (const mark of own.marks) {
      const [x, y] = project(...place(own.middle(mark), side), 0);
      root.append(text(x, y + 8, short(mark), "middle"));
    }
    const [x, y] = project(...place(0.5, side < 0 ? side - 0.11 : side + 0.11), 0);
    root.append(text(x, y + 10, name, "middle", "strong"));
  }

  // Walls that face the viewer, the farthest first, then the top, which hides what lies behind it.
  drawSlab(root, level, below, i, at) {
    const outline = [[0, 0]], top = level.l + 1;
    let left = 0;
    for (const [k, m] of level.stairs) {
      outline.push([left, m + 1], [k + 1, m + 1]);
      left = k + 1;
    }
    outline.push([left, 0]);
    const ring = outline.filter(([k, m], j) => !j || k !== outline[j - 1][0] || m !== outline[j - 1][1]);
    const ramp = `slab f${Math.min(Math.floor((i * 7) / Math.max(this.region.levels.length, 1)), 6)}`;
    const chosen = this.fixed === "l" && this.at <= level.l && this.at >= below ? " chosen" : "";
    const walls = ring.map((from, j) => ({ from, to: ring[(j + 1) % ring.length] })).map(({ from, to }) => this.wall(from, to, below, top, at)).filter(Boolean);
    walls.sort((a, b) => b.far - a.far);
    for (const { d, shade } of walls) root.append(svg("path", { class: ramp, d }), svg("path", { class: shade, d }));
    const d = `M${ring.map(([k, m]) => at(top, k, m).slice(0, 2).map((each) => each.toFixed(1)).join(" ")).join("L")}Z`;
    root.append(titled(svg("path", { class: ramp + chosen, d }), `${counted(level.l, "value")} ruled out: up to ${counted(level.stairs.at(-1)[0], "person").replace("persons", "people")} known, up to ${counted(level.stairs[0][1], "relative")}`));
  }

  wall(from, to, below, top, at) {
    // The outline runs with the clock, k to the right and m upwards: what is on its left lies outside.
    if (!this.faces(from[1] - to[1], to[0] - from[0])) return null;
    const corners = [at(below, ...from), at(below, ...to), at(top, ...to), at(top, ...from)], [a, b] = corners;
    const d = `M${corners.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}Z`;
    return { d, far: (a[2] + b[2]) / 2, shade: from[0] === to[0] ? "shade-b" : "shade-a" };
  }

  drawAsked(root, at) {
    for (const point of this.skyline.asked) {
      const [x, y] = at(point.l + 1, point.k + 0.5, point.m + 0.5), [, foot] = at(0, point.k + 0.5, point.m + 0.5);
      root.append(svg("path", { class: "rule", d: `M${x} ${y}V${foot}` }), titled(svg("path", { class: "asked", d: diamond(x, y, 7) }), `required: (${point.l}, ${point.k}, ${point.m}), breach ${percent(point.breach)}`));
    }
  }

  legend(scales) {
    const items = ["l", "k", "m"].map((axis) => html("li", {}, html("strong", {}, axis), `${NAMES[axis].split(" (")[0]}${scales[axis].many ? ", by logarithm" : ""}`));
    if (this.skyline.asked.length) items.push(html("li", {}, svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { class: "asked", d: diamond(8, 8, 6) })), "required by the config"));
    document.getElementById("skyline-legend").replaceChildren(...items);
  }

  drawSlice() {
    const [across, up] = { l: ["k", "m"], k: ["l", "m"], m: ["l", "k"] }[this.fixed];
    const steps = this.region.slice(this.fixed, this.at), place = document.getElementById("skyline-slice");
    const words = `With ${number.format(this.at)} ${NAMES[this.fixed]}`;
    document.getElementById("slice-at-name").textContent = `at ${number.format(this.at)}`;
    document.getElementById("slice-caption").textContent = `A slice: ${words.toLowerCase()}, this much of the other two is safe together.`;
    const { root, width, height } = box(place, 280, `${words}: ${steps.map(([a, b]) => `${a} ${across} with up to ${b} ${up}`).join(", ") || "nothing is safe"}.`);
    const left = 46, right = width - 14, base = height - 44, top = 14, xs = this.scale(across), ys = this.scale(up);
    const x = (at) => left + xs.place(at) * (right - left), y = (at) => base - ys.place(at) * (base - top);
    let d = `M${x(0)} ${base}`, from = 0;
    for (const [a, b] of steps) {
      d += `L${x(from)} ${y(b + 1)}L${x(a + 1)} ${y(b + 1)}`;
      from = a + 1;
    }
    if (steps.length) root.append(svg("path", { class: "safe", d: `${d}L${x(from)} ${base}Z` }));
    for (const mark of xs.marks) root.append(svg("path", { class: "rule", d: `M${x(mark)} ${base}V${top}` }), text(left + xs.middle(mark) * (right - left), base + 16, short(mark), "middle"));
    for (const mark of ys.marks) root.append(svg("path", { class: "rule", d: `M${left} ${y(mark)}H${right}` }), text(left - 8, base - ys.middle(mark) * (base - top) + 4, short(mark), "end"));
    root.append(svg("path", { class: "frame", d: `M${left} ${top}V${base}H${right}` }), text((left + right) / 2, height - 6, NAMES[across], "middle", "strong"));
    root.append(svg("text", { transform: `translate(12 ${(top + base) / 2}) rotate(-90)`, "text-anchor": "middle", class: "strong" }, NAMES[up]));
    for (const point of this.skyline.asked.filter((each) => each[this.fixed] >= this.at)) {
      root.append(titled(svg("path", { class: "asked", d: diamond((x(point[across]) + x(point[across] + 1)) / 2, (y(point[up]) + y(point[up] + 1)) / 2, 6) }), `required: (${point.l}, ${point.k}, ${point.m})`));
    }
  }

  drawCurves() {
    const place = document.getElementById("skyline-curves");
    const figures = ["l", "k", "m"].map((axis) => html("figure", {}, html("figcaption", {}, NAMES[axis]), html("div", { class: "chart" })));
    place.replaceChildren(...figures);
    ["l", "k", "m"].forEach((axis, i) => this.drawCurve(figures[i].lastChild, axis, this.value.curves[axis]));
  }

  drawCurve(place, axis, points) {
    const last = points.at(-1), listed = points.filter((_, i) => i % Math.ceil(points.length / 6) === 0 || i === points.length - 1);
    const { root, width, height } = box(place, 190, `Confidence by ${NAMES[axis]}: ${listed.map(([a, p]) => `${a}: ${percent(p)}`).join(", ")}`);
    const left = 44, right = width - 12, base = height - 24, top = 10, xs = scale(Math.max(last[0], 1));
    const x = (at) => left + xs.place(at) * (right - left), y = (share) => base - share * (base - top);
    for (const mark of [0, 0.5, 1]) root.append(svg("path", { class: "rule", d: `M${left} ${y(mark)}H${right}` }), text(left - 6, y(mark) + 4, percent(mark), "end"));
    for (const mark of xs.marks) root.append(text(x(mark), base + 16, short(mark), "middle"));
    root.append(svg("path", { class: "curve", d: `M${points.map(([a, p]) => `${x(a)} ${y(p)}`).join("L")}` }));
    for (const [a, p] of points) root.append(titled(svg("circle", { class: "dot", cx: x(a), cy: y(p), r: 3 }), `${number.format(a)}: ${percent(p)}`));
  }

  redraw() {
    this.draw();
    this.drawCurves();
  }
}

function diamond(x, y, r) {
  return `M${x} ${y - r}L${x + r} ${y}L${x} ${y + r}L${x - r} ${y}Z`;
}
