"use strict";
/* Draws the charts of the page, answers the slider, switches sets and methods, sorts the tables. Everything it shows comes from the JSON in the
   page; text is set as text, never as HTML. The functions above "The page" know nothing of it. */

// Losses of accuracy that the slider offers, in percentage points.
const LOSSES = [0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 7.5, 10];
const ACCURACIES = [0, 50, 80, 90, 95, 98, 99, 99.5, 99.8, 99.9, 99.95, 99.98, 99.99];
const APART = 0.07; // least distance of ticks, as a share of the axis
const ENOUGH = 180; // width of the words above the line
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
  if (size >= 1e9 || (size < 1e-3 && size > 0)) return value.toExponential(2);
  return size >= 1e4 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(digits)));
}

const duration = (s) => (s < 0.0995 ? `${number(1000 * s, 2)} ms` : `${number(s, s < 100 ? 2 : 3)} s`);
const vectorsOf = (n) => (n === 1 ? "1 vector" : `${number(Math.round(n))} vectors`);

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

/* Places for the names of series beside their points: for each label {points, width} the middle line and left end of its text. A place is better
   the fewer points, names and covered places it hides; the last point of a series comes first. Nothing leaves the box {left, right, top, bottom}. */
function placed(labels, box, covered = []) {
  const height = 16, taken = [...covered], all = labels.flatMap((label) => label.points);
  const overlap = (a, b) => Math.max(0, Math.min(a.right, b.right) - Math.max(a.left, b.left)) * Math.max(0, Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top));
  return labels.map(({ points, width }) => {
    let found = null;
    const from = [points[points.length - 1], points[0], ...points.slice(1, -1)].slice(0, 12);
    from.forEach((p, turn) => {
      for (const [dx, dy] of [[10, 0], [-10 - width, 0], [-width / 2, -15], [-width / 2, 15], [8, -15], [8, 15], [-8 - width, -15], [-8 - width, 15], [-width / 2, -32], [-width / 2, 32], [10, -48], [10, 48]]) {
        const left = Math.min(Math.max(p.x + dx, box.left), box.right - width), middle = Math.min(Math.max(p.y + dy, box.top + height / 2), box.bottom - height / 2);
        const own = { left, right: left + width, top: middle - height / 2, bottom: middle + height / 2 };
        let cost = turn + Math.hypot(left - p.x - dx, middle - p.y - dy) / 4 + Math.abs(dy) / 8;
        for (const other of taken) cost += overlap(own, other);
        for (const q of all) if (q.x > own.left - 4 && q.x < own.right + 4 && q.y > own.top - 2 && q.y < own.bottom + 2) cost += 40;
        if (!found || cost < found.cost) found = { x: left, y: middle, cost, own };
      }
    });
    taken.push(found.own);
    return { x: found.x, y: found.y };
  });
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
  if (known(model.vectors)) parts.unshift(vectorsOf(model.vectors));
  if (known(model.seconds)) parts.push(`${duration(model.seconds)} of training`);
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
    Object.assign(this, { figure, spec, hidden: new Set(spec.hidden || []), taken: null, guest: null, threshold: null, cursor: -1 });
    this.svg = figure.querySelector("svg.chart");
    this.readout = figure.querySelector(".readout");
    this.hint = this.readout.textContent;
    this.draw();
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerdown", (event) => this.point(event));
    this.svg.addEventListener("keydown", (event) => this.key(event));
    if (typeof ResizeObserver !== "undefined") new ResizeObserver(() => this.width() !== this.drawn && this.draw()).observe(figure);
  }

  width() {
    return Math.round(this.figure.clientWidth); // of one that is not shown: 0
  }

  draw() {
    const { spec, svg } = this, width = (this.drawn = this.width()), height = Math.round(Math.min(440, Math.max(360, width * 0.5)));
    const [left, right, top, bottom] = [48, 16, 28, 44];
    svg.replaceChildren();
    this.places = [];
    this.cursor = -1;
    this.readout.textContent = this.hint;
    if (width < 100) return;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const shown = spec.series.filter((series) => series.points.length && (!this.hidden.has(series.name) || series.name === this.guest)); // what an answer names must be seen
    const all = shown.flatMap((series) => series.points);
    if (!all.length) return;
    const X = scale(spec.x.scale, all.map((p) => p.x)), Y = scale(spec.y.scale, all.map((p) => p.y));
    const x = (v) => left + X.at(v) * (width - left - right), y = (v) => height - bottom - Y.at(v) * (height - top - bottom);
    for (const tick of Y.ticks) {
      node(svg, "line", { class: "grid", x1: left, x2: width - right, y1: y(tick), y2: y(tick) });
      node(svg, "text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, number(tick));
    }
    for (const tick of X.ticks) {
      node(svg, "line", { class: "axis", x1: x(tick), x2: x(tick), y1: height - bottom, y2: height - bottom + 5 });
      node(svg, "text", { x: x(tick), y: height - bottom + 18, "text-anchor": "middle" }, number(tick));
    }
    node(svg, "line", { class: "axis", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom });
    node(svg, "text", { class: "name", x: width - right, y: height - 6, "text-anchor": "end" }, `${spec.x.label} →`);
    node(svg, "text", { class: "name", x: 0, y: 14 }, `↑ ${spec.y.label}`);
    let atRight = false;
    if (known(this.threshold) && Y.at(this.threshold) >= 0 && Y.at(this.threshold) <= 1) {
      node(svg, "line", { class: "threshold", x1: left, x2: width - right, y1: y(this.threshold), y2: y(this.threshold) });
      const near = (from, end) => all.filter((p) => x(p.x) > from && x(p.x) < end && Math.abs(y(p.y) - y(this.threshold) + 10) < 16).length;
      atRight = near(width - right - ENOUGH, width) < near(left, left + ENOUGH);
      node(svg, "text", { class: "enough", x: atRight ? width - right : left + 4, y: y(this.threshold) - 6, "text-anchor": atRight ? "end" : "start" }, "good enough above this line");
    }
    for (const series of shown) {
      const group = node(svg, "g", { class: `s${series.style % 8}` });
      const counted = series.points.filter((p) => p.counts !== false), line = counted.length ? counted : series.points;
      if (series.line !== false && line.length > 1)
        node(group, "path", { class: counted.length ? "path" : "path dashed", d: "M" + line.map((p) => `${x(p.x).toFixed(1)} ${y(p.y).toFixed(1)}`).join("L") });
      for (const p of series.points) {
        const place = { x: x(p.x), y: y(p.y), text: p.text || `${series.name}: ${spec.x.label} ${number(p.x)}, ${spec.y.label} ${number(p.y)}` };
        this.places.push(place);
        if (series.points.length <= 60 || series.line === false)
          node(group, "path", { class: p.counts === false ? "mark hollow" : "mark", d: marker(series.style, place.x, place.y, series.points.length > 60 ? 2 : 4.5) });
        if (this.taken !== null && p.id === this.taken) node(svg, "circle", { class: "ring", cx: place.x, cy: place.y, r: 10 });
      }
    }
    if (spec.series.length < 2) return;
    const line = known(this.threshold) ? y(this.threshold) : -100, from = atRight ? width - right - ENOUGH : left;
    this.name(shown, x, y, { left, right: width - right, top, bottom: height - bottom }, [{ left: from, right: from + ENOUGH, top: line - 18, bottom: line }]);
  }

  name(shown, x, y, box, covered) {
    const texts = shown.map((series) => node(this.svg, "text", { class: `label s${series.style % 8}` }, series.name));
    const labels = shown.map((series, at) => ({
      points: series.points.map((p) => ({ x: x(p.x), y: y(p.y) })),
      width: texts[at].getComputedTextLength ? texts[at].getComputedTextLength() : 7 * series.name.length,
    }));
    placed(labels, box, covered).forEach((place, at) => {
      texts[at].setAttribute("x", place.x.toFixed(1));
      texts[at].setAttribute("y", (place.y + 4).toFixed(1));
    });
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

/* A set of models: its panels (a chart, an answer, switches for methods) and the rows of its table. */
class Comparison {
  constructor(spec, at) {
    Object.assign(this, { spec, charts: [], first: new Set(spec.first) });
    this.parts = [...document.querySelectorAll(`[data-set="${at}"]`)];
    this.panels = this.parts.filter((part) => part.dataset.view);
    for (const panel of this.panels) {
      const chart = new Chart(panel.querySelector("figure"), this.chart(panel.dataset.view));
      this.charts.push(chart);
      this.switches(panel.querySelector(".methods"), chart);
    }
  }

  chart(view) {
    const { models, methods, unit, measure } = this.spec;
    const series = methods.map(({ name, style }) => ({
      name, style,
      points: models.map((m, id) => ({ m, id })).filter(({ m }) => m.method === name && m[view] > 0 && known(m.score))
        .filter(({ m }) => !(m.part && view === "seconds")) // the seconds are those of the whole fit, which has a point
        .map(({ m, id }) => ({ id, x: m[view], y: m.score, counts: m.counts, text: described(m, unit) })).sort((a, b) => a.x - b.x),
    }));
    const x = { label: view === "vectors" ? "vectors" : "seconds of training", scale: "log" };
    return { x, y: { label: measure, scale: this.spec.scale }, series: series.filter((s) => s.points.length), hidden: methods.map((m) => m.name).filter((name) => !this.first.has(name)) };
  }

  switches(place, chart) {
    if (!place || chart.spec.series.length < 2) return;
    const list = (parent, all) => {
      const items = node(parent, "ul", { "aria-label": "Methods in the chart" });
      for (const series of all) {
        const button = node(node(items, "li"), "button", { type: "button", "aria-pressed": String(!chart.hidden.has(series.name)) });
        const frame = chart.svg.cloneNode(false);
        for (const name of ["role", "tabindex", "aria-label", "class"]) frame.removeAttribute(name);
        frame.setAttribute("viewBox", "0 0 16 16");
        frame.setAttribute("aria-hidden", "true");
        button.appendChild(frame);
        node(frame, "path", { class: `mark s${series.style % 8}`, d: marker(series.style, 8, 8, 5) });
        node(button, "span", {}, series.name);
        button.addEventListener("click", () => {
          chart.hidden.has(series.name) ? chart.hidden.delete(series.name) : chart.hidden.add(series.name);
          button.setAttribute("aria-pressed", String(!chart.hidden.has(series.name)));
          chart.draw();
        });
      }
    };
    const { series } = chart.spec, more = series.filter((one) => !this.first.has(one.name));
    list(place, [...this.first].flatMap((name) => series.filter((one) => one.name === name)));
    if (!more.length) return;
    const folded = node(place, "details");
    node(folded, "summary", {}, more.length === 1 ? "1 more method" : `${more.length} more methods`);
    list(folded, more);
  }

  answer(place, model, value, best) {
    place.replaceChildren();
    if (!model) return;
    const { unit, models, rows, scored } = this.spec, score = (m) => `${m.score.toFixed(2)} ${unit}`;
    node(place, "strong", {}, value);
    const below = best - model.score < 0.005 ? "the best of all" : `${(best - model.score).toFixed(2)} below the best`;
    let text = ` ${model.method}: ${score(model)}, ${below}.`;
    if (rows) text = ` ${score(model)} on ${model.method}, where this size was chosen: ${below}.`;
    const other = scored && models.find((m) => m.method === scored && m.vectors === model.vectors);
    if (other && known(other.score)) text += ` ${score(other)} on ${scored}.`;
    node(place, "span", {}, text);
  }

  take(loss) {
    const { models } = this.spec, { best, threshold, small, quick } = choose(models, loss);
    if (!known(best)) return {};
    this.panels.forEach((panel, at) => {
      const vectors = panel.dataset.view === "vectors", model = vectors ? small : quick;
      this.answer(panel.querySelector(".answer"), model, model ? (vectors ? vectorsOf(model.vectors) : duration(model.seconds)) : "", best);
      Object.assign(this.charts[at], { threshold, taken: model ? models.indexOf(model) : null, guest: model ? model.method : null });
      this.charts[at].draw();
    });
    for (const part of this.parts)
      for (const row of part.querySelectorAll("tr[data-model]")) {
        const model = models[Number(row.getAttribute("data-model"))];
        row.classList.toggle("taken", model === small || model === quick);
      }
    return { best, small, quick };
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
  const chooser = document.getElementById("set");
  const choice = (at) => document.querySelectorAll("[data-set]").forEach((part) => { part.hidden = part.dataset.set !== String(at); });
  if (chooser) choice(chooser.value);
  const sets = data.comparisons.map((spec, at) => new Comparison(spec, at));
  document.querySelectorAll("table.sortable").forEach(sortable);
  const slider = document.getElementById("loss");
  if (!slider) return;
  const rows = [...document.querySelectorAll("#answers tbody tr")];
  const loss = () => LOSSES[Number(slider.value)];
  const update = () => {
    const text = loss() === 1 ? "1 percentage point" : `${loss()} percentage points`;
    document.getElementById("loss-text").textContent = text;
    slider.setAttribute("aria-valuetext", text);
    sets.forEach((set, at) => {
      const { best, small, quick } = set.take(loss());
      if (!rows[at]) return;
      const cells = [...rows[at].children].slice(1);
      cells[0].textContent = known(best) ? best.toFixed(2) : "";
      for (const [cell, model, value] of [[cells[1], small, small && vectorsOf(small.vectors)], [cells[2], quick, quick && duration(quick.seconds)]]) {
        cell.replaceChildren();
        if (!model) continue;
        node(cell, "b", {}, value);
        node(cell, "span", {}, ` ${model.method}, ${model.score.toFixed(2)} %`);
      }
    });
  };
  slider.setAttribute("max", String(LOSSES.length - 1));
  slider.addEventListener("input", update);
  update();
  if (!chooser) return;
  const select = (at) => {
    chooser.value = String(at);
    choice(at);
    sets[at].take(loss());
  };
  chooser.addEventListener("change", () => select(Number(chooser.value)));
  rows.forEach((row, at) => row.querySelector("button").addEventListener("click", () => {
    select(at);
    document.querySelector("main h2").scrollIntoView();
    chooser.focus({ preventScroll: true });
  }));
}

if (typeof document !== "undefined") start();
if (typeof module !== "undefined") module.exports = { LOSSES, choose, duration, marker, number, placed, scale, sorted };
