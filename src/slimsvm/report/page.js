"use strict";
/* Draws the charts of the page, answers the slider, sorts the tables. Everything it shows comes from the JSON in the page; text is set as
   text, never as HTML. The page is complete without it but for charts and slider. The functions above "The page" know nothing of it. */

// Losses of accuracy that the slider offers, in percentage points.
const LOSSES = [0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 7.5, 10];
const ACCURACIES = [0, 50, 80, 90, 95, 98, 99, 99.5, 99.8, 99.9, 99.95, 99.98, 99.99];
const APART = 0.07; // least distance of ticks, as a share of the axis
const known = (value) => typeof value === "number" && isFinite(value);

/* The models to take if the score may be so much below the best: the one with the fewest vectors, and the one trained quickest. */
function choose(models, loss) {
  const able = models.filter((m) => m.counts && known(m.score));
  const best = Math.max(...able.map((m) => m.score));
  const good = able.filter((m) => m.score >= best - loss - 1e-9);
  const least = (name, then) =>
    good.filter((m) => known(m[name])).sort((a, b) => a[name] - b[name] || b.score - a.score || (a[then] ?? Infinity) - (b[then] ?? Infinity))[0];
  return { best, threshold: best - loss, small: least("vectors", "seconds"), quick: least("seconds", "vectors") };
}

function number(value, digits = 4) {
  if (!known(value)) return "unknown";
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return value.toLocaleString("en");
  const size = Math.abs(value);
  return size >= 1e6 || (size < 1e-3 && size > 0) ? value.toExponential(2) : String(Number(value.toPrecision(digits)));
}

/* A scale takes values to 0..1 and has ticks. Kinds: linear, log, and error: the logarithm of what is missing to 100. */
function scale(kind, values) {
  const errors = values.map((v) => 100 - v).filter((e) => e > 0);
  const floor = Math.min(...errors, 100) / 2; // where no error at all is drawn: a logarithm has no zero
  const to = { linear: (v) => v, log: (v) => Math.log10(v), error: (v) => -Math.log10(Math.max(100 - v, floor)) }[kind];
  const [low, high] = [Math.min(...values), Math.max(...values)];
  let [from, end] = [to(low), to(high)];
  const margin = (end - from || Math.abs(end) || 1) * 0.06;
  from -= margin;
  end += margin;
  const inside = (v) => to(v) >= from && to(v) <= end;
  let ticks = [];
  if (kind === "log") {
    for (const step of [[1], [1, 3], [1, 2, 5], [1, 2, 3, 5, 7]]) {
      if (ticks.length >= 3) break;
      ticks = [];
      for (let e = Math.floor(from); e <= Math.ceil(end); e++) for (const f of step) ticks.push(Number((f * 10 ** e).toPrecision(3)));
      ticks = ticks.filter(inside);
    }
    while (ticks.length > 8) ticks = ticks.filter((_, at) => at % 2 === 0);
  } else if (kind === "error") {
    ticks = ACCURACIES.filter(inside);
  }
  if (ticks.length < 3 && kind !== "log") {
    const raw = (high - low || Math.abs(high) || 1) / 4;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= raw);
    ticks = [];
    for (let k = Math.ceil((low - step) / step); k * step <= high + step; k++) ticks.push(Number((k * step).toPrecision(12)));
    ticks = ticks.filter((v) => inside(v) && (kind === "linear" || v <= 100));
  }
  if (low === high) ticks = [low];
  const at = (v) => (to(v) - from) / (end - from);
  return { at, ticks: ticks.reverse().reduce((kept, v) => (kept.length && at(kept[0]) - at(v) < APART ? kept : [v, ...kept]), []) };
}

/* The outline of a marker around (x, y): seven shapes, and eight colours, so that 56 series differ. */
function marker(shape, x, y, r) {
  const corners = (n, turn, inner) =>
    "M" + Array.from({ length: n }, (_, k) => {
      const angle = turn + (2 * Math.PI * k) / n, size = inner && k % 2 ? r * inner : r * 1.15;
      return (x + size * Math.sin(angle)).toFixed(1) + " " + (y - size * Math.cos(angle)).toFixed(1);
    }).join("L") + "Z";
  switch (shape % 7) {
    case 0: return `M${(x - r).toFixed(1)} ${y.toFixed(1)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`;
    case 1: return corners(4, Math.PI / 4);
    case 2: return corners(3, 0);
    case 3: return corners(4, 0);
    case 4: return corners(3, Math.PI);
    case 5: return corners(10, 0, 0.45);
    default: return corners(8, 0, 0.4);
  }
}

/* Rows in order of one column; what is missing comes last, whichever way. */
function sorted(rows, value, up) {
  return rows.map((row, at) => [value(row), at, row]).sort(([a, i], [b, j]) => {
    const gone = (v) => v === "" || v === null || v === undefined;
    if (gone(a) || gone(b)) return gone(a) - gone(b) || i - j;
    const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
    return (up ? order : -order) || i - j;
  }).map(([, , row]) => row);
}

function described(model, unit) {
  const parts = [`${model.score.toFixed(2)} ${unit}`];
  if (known(model.vectors)) parts.unshift(model.vectors === 1 ? "1 vector" : `${number(model.vectors)} vectors`);
  if (known(model.seconds)) parts.push(`${number(model.seconds, 3)} s of training`);
  return `${model.method}: ${parts.join(", ")}${model.note ? ` (${model.note})` : ""}`;
}

// -- The page ---------------------------------------------------------------------------------------------------------------------------

function node(parent, name, attributes = {}, text = "") {
  const svg = parent.namespaceURI && parent.namespaceURI.endsWith("svg"); // the page itself names no address, not even this one
  const made = svg ? document.createElementNS(parent.namespaceURI, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  parent.appendChild(made);
  return made;
}

class Chart {
  constructor(figure, spec) {
    Object.assign(this, { figure, spec, hidden: new Set(), taken: [], threshold: null, cursor: -1 });
    this.svg = figure.querySelector("svg.chart");
    this.readout = figure.querySelector(".readout");
    this.legend();
    this.draw();
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerdown", (event) => this.point(event));
    this.svg.addEventListener("keydown", (event) => this.key(event));
    if (typeof ResizeObserver !== "undefined") new ResizeObserver(() => this.width() !== this.drawn && this.draw()).observe(figure);
  }

  width() {
    return Math.max(280, Math.round(this.figure.clientWidth || 600));
  }

  legend() {
    const list = this.figure.querySelector(".legend");
    this.spec.series.forEach((series, at) => {
      const button = node(node(list, "li"), "button", { type: "button", "aria-pressed": "true" });
      const frame = this.svg.cloneNode(false);
      for (const name of ["role", "tabindex", "aria-label", "class"]) frame.removeAttribute(name);
      frame.setAttribute("viewBox", "0 0 16 16");
      frame.setAttribute("aria-hidden", "true");
      button.appendChild(frame);
      node(frame, "path", { class: `mark s${series.style % 8}`, d: marker(series.style, 8, 8, 5) });
      node(button, "span", {}, series.name);
      button.addEventListener("click", () => {
        this.hidden.has(at) ? this.hidden.delete(at) : this.hidden.add(at);
        button.setAttribute("aria-pressed", String(!this.hidden.has(at)));
        this.draw();
      });
    });
  }

  draw() {
    const { spec, svg } = this, width = (this.drawn = this.width()), height = Math.round(Math.min(380, Math.max(240, width * 0.6)));
    const [left, right, top, bottom] = [52, 12, 10, 40];
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const shown = spec.series.map((series, at) => (this.hidden.has(at) ? { ...series, points: [] } : series));
    const all = shown.flatMap((series) => series.points);
    this.places = [];
    this.cursor = -1;
    if (!all.length) return;
    const X = scale(spec.x.scale, all.map((p) => p.x)), Y = scale(spec.y.scale, all.map((p) => p.y));
    const x = (v) => left + X.at(v) * (width - left - right), y = (v) => height - bottom - Y.at(v) * (height - top - bottom);
    for (const tick of Y.ticks) {
      node(svg, "line", { class: "grid", x1: left, x2: width - right, y1: y(tick), y2: y(tick) });
      node(svg, "text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, number(tick));
    }
    for (const tick of X.ticks) {
      node(svg, "line", { class: "grid", x1: x(tick), x2: x(tick), y1: height - bottom, y2: height - bottom + 5 });
      node(svg, "text", { x: x(tick), y: height - bottom + 18, "text-anchor": "middle" }, number(tick));
    }
    node(svg, "line", { class: "grid", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom });
    node(svg, "text", { x: width - right, y: height - 4, "text-anchor": "end" }, spec.x.label);
    if (known(this.threshold) && Y.at(this.threshold) >= 0 && Y.at(this.threshold) <= 1)
      node(svg, "line", { class: "threshold", x1: left, x2: width - right, y1: y(this.threshold), y2: y(this.threshold) });
    for (const series of shown) {
      const group = node(svg, "g", { class: `s${series.style % 8}` });
      const line = series.points.filter((p) => p.counts !== false);
      if (series.line !== false && line.length > 1)
        node(group, "path", { class: "path", d: "M" + line.map((p) => `${x(p.x).toFixed(1)} ${y(p.y).toFixed(1)}`).join("L") });
      for (const p of series.points) {
        const place = { x: x(p.x), y: y(p.y), text: p.text || `${series.name}: ${spec.x.label} ${number(p.x)}, ${spec.y.label} ${number(p.y)}` };
        this.places.push(place);
        if (series.points.length <= 60)
          node(group, "path", { class: p.counts === false ? "mark hollow" : "mark", d: marker(series.style, place.x, place.y, 4) });
        if (this.taken.includes(p.id) && p.id !== undefined) node(svg, "circle", { class: "ring", cx: place.x, cy: place.y, r: 10 });
      }
    }
  }

  point(event) {
    const box = this.svg.getBoundingClientRect(), ratio = this.drawn / (box.width || this.drawn);
    const [px, py] = [(event.clientX - box.left) * ratio, (event.clientY - box.top) * ratio];
    let nearest = -1, least = 40 ** 2;
    this.places.forEach((p, at) => {
      const distance = (p.x - px) ** 2 + (p.y - py) ** 2;
      if (distance < least) [nearest, least] = [at, distance];
    });
    if (nearest >= 0 && nearest !== this.cursor) this.show(nearest);
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step || !this.places.length) return;
    event.preventDefault();
    this.show((this.cursor + step + this.places.length + (this.cursor < 0 && step < 0 ? 1 : 0)) % this.places.length);
  }

  show(at) {
    this.cursor = at;
    if (this.mark && this.mark.parentNode) this.mark.remove();
    this.mark = node(this.svg, "circle", { class: "cursor", cx: this.places[at].x, cy: this.places[at].y, r: 7 });
    this.readout.textContent = this.places[at].text;
  }
}

/* A set of models: its charts, its table, and the sentence that says which to take. */
class Comparison {
  constructor(section, spec) {
    Object.assign(this, { section, spec });
    this.sentence = section.querySelector(".take");
    this.charts = spec.charts.map((chart) => new Chart(section.querySelector(`figure[data-chart="${chart.key}"]`), this.chart(chart)));
  }

  chart(chart) {
    const { models, unit } = this.spec;
    const series = this.spec.methods.map(({ name, style }) => ({
      name, style,
      points: models.map((m, id) => ({ m, id })).filter(({ m }) => m.method === name && m[chart.x] > 0 && known(m.score))
        .filter(({ m }) => !(m.part && chart.x === "seconds")) // the seconds are those of the whole fit, which has a point
        .map(({ m, id }) => ({ id, x: m[chart.x], y: m.score, counts: m.counts, text: described(m, unit) })).sort((a, b) => a.x - b.x),
    }));
    return { x: { label: chart.label, scale: "log" }, y: { label: this.spec.measure, scale: this.spec.scale }, series: series.filter((s) => s.points.length) };
  }

  take(loss) {
    const { models, unit, name } = this.spec, { best, threshold, small, quick } = choose(models, loss);
    if (!known(best)) return { name };
    const texts = [small && `Fewest vectors: ${described(small, unit)}.`, quick && `Quickest training: ${described(quick, unit)}.`].filter(Boolean);
    this.sentence.textContent = `Best: ${best.toFixed(2)} ${unit}. ${texts.join(" ")}`;
    for (const chart of this.charts) {
      chart.threshold = threshold;
      chart.taken = [small, quick].filter(Boolean).map((m) => models.indexOf(m));
      chart.draw();
    }
    for (const row of this.section.querySelectorAll("tr[data-model]")) {
      const model = models[Number(row.getAttribute("data-model"))];
      row.classList.toggle("taken", model === small || model === quick);
    }
    return { name, small, quick };
  }
}

function sortable(table) {
  const body = table.querySelector("tbody");
  table.querySelectorAll("thead th").forEach((head, column) => {
    const button = head.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      table.querySelectorAll("thead th").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const value = (row) => {
        const cell = row.children[column], plain = cell.getAttribute("data-value");
        return plain === null ? cell.textContent : plain === "" ? null : Number(plain);
      };
      body.replaceChildren(...sorted([...body.children], value, up));
    });
  });
}

function start() {
  const data = JSON.parse(document.getElementById("data").textContent);
  for (const spec of data.charts) new Chart(document.querySelector(`figure[data-chart="${spec.key}"]`), spec);
  const sets = data.comparisons.map((spec) => new Comparison(document.getElementById(spec.key), spec));
  document.querySelectorAll("table.sortable").forEach(sortable);
  const slider = document.getElementById("loss");
  if (!slider) return;
  const rows = [...document.querySelectorAll("#choice tbody tr")];
  const update = () => {
    const loss = LOSSES[Number(slider.value)], text = loss === 1 ? "1 percentage point" : `${loss} percentage points`;
    document.getElementById("loss-text").textContent = text;
    slider.setAttribute("aria-valuetext", text);
    sets.forEach((set, at) => {
      const { small, quick } = set.take(loss);
      if (!rows[at]) return;
      rows[at].children[1].textContent = small ? described(small, set.spec.unit) : "";
      rows[at].children[2].textContent = quick ? described(quick, set.spec.unit) : "";
    });
  };
  slider.setAttribute("max", String(LOSSES.length - 1));
  slider.addEventListener("input", update);
  update();
}

if (typeof document !== "undefined") start();
if (typeof module !== "undefined") module.exports = { LOSSES, choose, marker, number, scale, sorted };
