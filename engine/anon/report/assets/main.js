// Draws the charts of the page, redraws them when its width changes, and marks the section that is being read.

function chartsOf(facts) {
  const found = [...document.querySelectorAll("[data-chart]")].map((place) => {
    const own = facts[place.dataset.chart];
    return { redraw: () => CHARTS[place.dataset.chart](place, place.dataset.index === undefined ? own : own[Number(place.dataset.index)]) };
  });
  for (const chart of found) chart.redraw();
  return found;
}

function markCurrent() {
  const links = new Map([...document.querySelectorAll("nav.contents a")].map((link) => [link.hash.slice(1), link]));
  const watch = new IntersectionObserver((entries) => {
    const seen = entries.filter((entry) => entry.isIntersecting);
    if (!seen.length) return;
    for (const link of links.values()) link.removeAttribute("aria-current");
    links.get(seen[0].target.id)?.setAttribute("aria-current", "true");
  }, { rootMargin: "-10% 0px -75% 0px" });
  for (const id of links.keys()) watch.observe(document.getElementById(id));
}

function begin() {
  const facts = JSON.parse(document.getElementById("facts").textContent);
  const drawn = chartsOf(facts);
  if (facts.knowledge) drawn.push(new SkylineView(facts.knowledge));
  if (facts.cuts) drawn.push(new CutMap(facts.cuts));
  if (facts.lattice) drawn.push(new LatticeMap(facts.lattice));
  let width = document.documentElement.clientWidth, frame = 0;
  window.addEventListener("resize", () => {
    if (document.documentElement.clientWidth === width) return;
    width = document.documentElement.clientWidth;
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => drawn.forEach((each) => each.redraw()));
  });
  markCurrent();
}

begin();
