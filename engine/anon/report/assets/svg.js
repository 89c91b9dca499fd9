// Shared by all charts: SVG elements, scales, axes, formatted numbers. A chart is a function that draws into a box of
// the width that the page gives it; colours come from classes alone, so that dark mode and print need no script.

function svg(name, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function html(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function text(x, y, words, anchor = "start", cls = "") {
  return svg("text", { x, y, "text-anchor": anchor, class: cls }, String(words));
}

const number = new Intl.NumberFormat("en");
const counted = (count, word) => `${number.format(count)} ${word}${count === 1 ? "" : "s"}`;

function percent(share) {
  if (share > 0 && share < 0.001) return `${(share * 100).toPrecision(1)}%`;
  if (share > 0.999 && share < 1) return `${(share * 100).toFixed(3)}%`;
  return `${Number((share * 100).toFixed(1))}%`;
}

function short(value) {
  return value >= 1e6 ? `${Number((value / 1e6).toFixed(1))}M` : value >= 1e4 ? `${Math.round(value / 1e3)}k` : number.format(value);
}

// Long names are shortened in the middle, where they differ least.
function clipped(words, room) {
  const most = Math.max(4, Math.floor(room / 6.6));
  if (words.length <= most) return words;
  const half = Math.floor((most - 1) / 2);
  return `${words.slice(0, most - 1 - half)}…${words.slice(words.length - half)}`;
}

// Round numbers from 0 to a largest one, about `count` of them.
function ticks(largest, count) {
  const raw = Math.max(largest, 1e-9) / Math.max(count, 1), power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= raw * 0.999);
  const found = [];
  for (let at = 0; at <= largest * 1.0001; at += step) found.push(Number(at.toPrecision(12)));
  return found;
}

// From 0 to a largest number onto 0 to 1: as they are while they are few, by logarithm beyond that. A number of pieces
// has the room up to the next one; `middle` is where it is written.
function scale(largest) {
  const many = largest > 60;
  const place = many ? (at) => Math.log1p(at) / Math.log1p(largest) : (at) => at / Math.max(largest, 1);
  let marks = ticks(largest, 5).filter(Number.isInteger);
  if (many) marks = [0, 1, 3, 10, 30, 100, 300, 1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6].filter((at) => at <= largest);
  return { place, marks, many, middle: (at) => (place(at) + place(Math.min(at + 1, largest))) / 2 };
}

// A box to draw in: an SVG as wide as its place, which the reader of a screen knows by a label.
function box(place, height, label) {
  const width = Math.max(260, Math.round(place.clientWidth || 640));
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  place.replaceChildren(root);
  return { root, width, height };
}

function titled(node, words) {
  node.append(svg("title", {}, words));
  return node;
}
