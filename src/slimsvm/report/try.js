/* "Try it": sliders or a drawing, and the answer of the model that stands above in the same module (about, predict, scores, probabilities). */
(() => {
  const place = document.querySelector(".try"), spec = JSON.parse(document.getElementById("data").textContent).trying;
  const row = Float64Array.from(spec.row), part = (name) => place.querySelector(name);
  const verdict = part(".verdict"), bars = part(".bars"), clock = part(".clock"), truth = part(".truth");
  const short = (v) => (Math.abs(v) >= 1e5 || (v !== 0 && Math.abs(v) < 1e-3) ? v.toExponential(2) : String(Number(v.toPrecision(4))));
  const MOST_BARS = 5, PATIENCE = 40 /* milliseconds */, STEPS = 40, MOST_WORK = 2e7; // of all curves below the sliders, in multiplications

  function values(x) { // what is shown of a row: {label, bars: [name, value as text, share of the track]}
    const said = predict(x), known = probabilities(x);
    if (about.answer === "number") return { label: short(said), bars: [] };
    const found = scores(x);
    if (about.answer === "sign") return { label: said > 0 ? "inside" : "an outlier", bars: [["decision value", short(found[0]), null]] };
    const names = about.classes.map(String);
    if (known) return { label: String(said), bars: names.map((name, k) => [name, `${(100 * known[k]).toFixed(1)} %`, known[k]]) };
    if (found.length !== names.length) {
      const each = names.length === 2 ? [-found[0], found[0]] : [];
      return { label: String(said), bars: each.map((v, k) => [names[k], short(v), Math.min(1, Math.max(0, 0.5 + v / 4))]) };
    }
    const low = Math.min(...found), high = Math.max(...found);
    return { label: String(said), bars: names.map((name, k) => [name, short(found[k]), high > low ? (found[k] - low) / (high - low) : 0]) };
  }

  function bar(parent, [name, value, share], first) {
    const add = (to, tag, kind, text) => {
      const made = document.createElement(tag);
      made.className = kind;
      made.textContent = text;
      return to.appendChild(made);
    };
    const item = add(parent, "li", first ? "first" : "", "");
    add(item, "span", "name", name);
    const track = add(item, "span", "track", "");
    add(item, "span", "value", value);
    if (share === null) track.remove();
    else add(track, "span", "", "").style.width = `${(100 * share).toFixed(1)}%`;
  }

  let took = Infinity; // all answers take the same: the quickest, since the first waits for the compiler, and any for other work
  function timed() {
    const begin = performance.now(), found = values(row);
    took = Math.min(took, performance.now() - begin);
    return found;
  }

  function answer() {
    const fresh = took === Infinity, begin = performance.now(), { label, bars: all } = timed();
    for (let more = 0; fresh && more < 20 && took >= 1 && performance.now() - begin < PATIENCE; more++) timed();
    if (verdict.textContent !== label) verdict.textContent = label;
    const order = all.map((_, k) => k).sort((a, b) => (all[b][2] ?? 0) - (all[a][2] ?? 0) || a - b).slice(0, MOST_BARS);
    bars.replaceChildren();
    for (const k of order) bar(bars, all[k], all[k][0] === label);
    clock.textContent = took < 1 ? "less than a millisecond" : `${took.toFixed(0)} ms`;
  }

  const said = (example) => { truth.textContent = example ? example.text : ""; };
  if (about.classes) bars.style.setProperty("--name", `${Math.min(14, Math.max(...about.classes.map((c) => String(c).length)) + 1) * 0.6}rem`);
  let last = -1;
  const next = () => {
    last = (last + 1) % spec.examples.length;
    row.set(spec.examples[last].row);
    said(spec.examples[last]);
  };

  function sliders() {
    const inputs = [...place.querySelectorAll("input")], curves = [...place.querySelectorAll(".feature svg")];
    const light = about.multiplications * inputs.length * STEPS <= MOST_WORK;
    if (!light) curves.forEach((curve) => curve.remove());
    const one = (x) => { // the number that a curve shows: a target, a decision value, or how far the answer is ahead
      if (about.answer === "number") return predict(x);
      const found = probabilities(x) || scores(x), at = about.classes ? about.classes.map(String).indexOf(verdict.textContent) : 0;
      if (found.length === 1) return about.classes && at === 0 ? -found[0] : found[0];
      return found[Math.max(0, at)];
    };
    const draw = () => {
      if (!light) return;
      inputs.forEach((input, k) => {
        const { index, low, high } = spec.features[k], x = Float64Array.from(row), found = [];
        for (let t = 0; t <= STEPS; t++) {
          x[index] = low + ((high - low) * t) / STEPS;
          found.push(one(x));
        }
        input.curve = found;
      });
      const all = inputs.flatMap((input) => input.curve), least = Math.min(...all), most = Math.max(...all);
      inputs.forEach((input, k) => {
        const y = (v) => (most > least ? 26 - (24 * (v - least)) / (most - least) : 14), { index, low, high } = spec.features[k];
        const at = Math.min(Math.max((100 * (row[index] - low)) / (high - low || 1), 0), 100).toFixed(2);
        curves[k].querySelector("polyline").setAttribute("points", input.curve.map((v, t) => `${(100 * t) / STEPS},${y(v).toFixed(1)}`).join(" "));
        curves[k].querySelector("line").setAttribute("x1", at);
        curves[k].querySelector("line").setAttribute("x2", at);
      });
    };
    const show = () => {
      inputs.forEach((input, k) => { input.parentNode.querySelector("output").textContent = short(row[spec.features[k].index]); });
      answer();
      draw();
    };
    const fill = () => inputs.forEach((input, k) => { input.value = String(row[spec.features[k].index]); });
    inputs.forEach((input, k) => input.addEventListener("input", () => {
      row[spec.features[k].index] = Number(input.value);
      said(null);
      show();
    }));
    part(".reset").addEventListener("click", () => { row.set(spec.row); said(null); fill(); show(); });
    if (part(".another")) part(".another").addEventListener("click", () => { next(); fill(); show(); });
    fill();
    show();
  }

  function drawing() {
    const canvas = part("canvas"), pen = canvas.getContext("2d"), [height, width] = spec.shape, { low, high } = spec;
    const radius = Math.max(0.75, Math.max(width, height) / 22);
    const cursor = { x: width >> 1, y: height >> 1, shown: false };
    const show = () => {
      const picture = pen.createImageData(width, height);
      row.forEach((v, k) => {
        const grey = Math.round((255 * (Math.min(Math.max(v, low), high) - low)) / (high - low || 1));
        picture.data.set([grey, grey, grey, 255], 4 * k);
      });
      if (cursor.shown) picture.data.set([255, 140, 0, 255], 4 * (cursor.y * width + cursor.x));
      pen.putImageData(picture, 0, 0);
      answer();
    };
    const stamp = (x, y) => { // a soft round brush
      for (let i = Math.max(0, Math.floor(y - radius - 1)); i <= Math.min(height - 1, y + radius + 1); i++)
        for (let j = Math.max(0, Math.floor(x - radius - 1)); j <= Math.min(width - 1, x + radius + 1); j++) {
          const ink = Math.min(1, Math.max(0, radius + 0.5 - Math.hypot(j + 0.5 - x, i + 0.5 - y)));
          row[i * width + j] = Math.max(row[i * width + j], low + ink * (high - low));
        }
    };
    let from = null;
    const to = (event) => {
      const box = canvas.getBoundingClientRect();
      return { x: ((event.clientX - box.left) / box.width) * width, y: ((event.clientY - box.top) / box.height) * height };
    };
    const stroke = (event) => {
      const end = to(event), begin = from || end, steps = Math.max(1, Math.ceil(2 * Math.hypot(end.x - begin.x, end.y - begin.y)));
      for (let t = 0; t <= steps; t++) stamp(begin.x + ((end.x - begin.x) * t) / steps, begin.y + ((end.y - begin.y) * t) / steps);
      from = end;
      said(null);
      show();
    };
    let own = false; // the first stroke of one's own begins on an empty ground
    const begin = () => {
      if (!own) row.fill(low);
      own = true;
    };
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      cursor.shown = false;
      begin();
      from = null;
      stroke(event);
    });
    canvas.addEventListener("pointermove", (event) => { if (event.buttons) stroke(event); });
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
      if (!step && event.key !== " ") return;
      event.preventDefault();
      cursor.shown = true;
      if (step) {
        cursor.x = Math.min(width - 1, Math.max(0, cursor.x + step[0]));
        cursor.y = Math.min(height - 1, Math.max(0, cursor.y + step[1]));
      }
      if (event.key === " " || event.shiftKey) {
        begin();
        stamp(cursor.x + 0.5, cursor.y + 0.5);
        said(null);
      }
      show();
    });
    canvas.addEventListener("blur", () => { cursor.shown = false; show(); });
    part(".reset").addEventListener("click", () => { row.fill(low); own = true; said(null); show(); });
    if (part(".another")) part(".another").addEventListener("click", () => { next(); own = false; show(); });
    if (spec.examples.length) next();
    show();
  }

  spec.kind === "drawing" ? drawing() : sliders();
})();
