"use strict";
// Draws the report from the JSON in the page. Every name and label is data: it reaches the page through textContent
// or setAttribute on inert attributes only.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  // Okabe and Ito's colours, distinguishable with any kind of colour vision; marks and dashes repeat the distinction.
  const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];
  const MARKS = ["circle", "square", "triangle", "diamond", "cross", "down", "saltire"];
  const DASHES = ["", "7 4", "2 3", "9 3 2 3", "4 2"];
  const state = { dimension: data.start, method: startMethod(), figure: "corrected_loss", allFeatures: false };

  function startMethod() {
    const names = data.methods.map((method) => method.name);
    return names.includes("FairPCA") ? "FairPCA" : names[names.length - 1];
  }
  const result = (method, dimension) => data.results[`${method}|${dimension}`];
  const colour = (index) => COLOURS[index % COLOURS.length];
  // From the eighth on, colours repeat with other marks.
  const mark = (index) => MARKS[(index + Math.floor(index / COLOURS.length)) % MARKS.length];
  // Ordinary PCA is black and hollow, here and in fairpca.plotting; the other methods have the colours in order.
  const others = data.methods.map((method) => method.name).filter((name) => name !== "PCA");
  const methodColour = (name) => (name === "PCA" ? "#000000" : colour(others.indexOf(name)));
  const methodMark = (name) => (name === "PCA" ? "circle" : mark(others.indexOf(name)));

  // ---- numbers -------------------------------------------------------------------------------------------------
  function number(value) {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    if (size < 5e-10) return "0";
    if (size < 1e-4 || size >= 1e6) return value.toExponential(1).replace("e+", "e");
    const digits = Math.max(0, 2 - Math.floor(Math.log10(size)));
    return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  }
  const percent = (value) => (value === null || value === undefined ? "–" : `${(100 * value).toFixed(1)}\u00a0%`);
  const range = (figure) => (figure.length < 3 ? null : `${number(figure[1])} to ${number(figure[2])}`);
  const signed = (value) => (value > 0 ? `+${number(value)}` : number(value));
  const VALUES = { corrected_loss: "loss on new rows", loss: "loss in the sample", error: "error on new rows" };
  const gapNames = { corrected_loss: "gap of losses on new rows", loss: "gap of losses in the sample", error: "gap of errors on new rows" };
  const DECIDED = { demographic_parity: true, equal_opportunity: true, equalized_odds: true };
  const groups = data.order.map((label) => ({ label, count: data.groups[label], heldOut: data.held_out_rows[label] }));
  const components = (count) => (count === 1 ? "1 component" : `${count} components`);

  // ---- elements ------------------------------------------------------------------------------------------------
  const byId = (id) => document.getElementById(id);
  function html(name, text, parent) {
    const element = document.createElement(name);
    if (text !== undefined && text !== null) element.textContent = text;
    if (parent) parent.append(element);
    return element;
  }
  function svg(name, attributes, parent, text) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    if (parent) parent.append(element);
    return element;
  }
  function drawMark(parent, shape, x, y, size, fill, attributes = {}) {
    const r = size;
    const common = { fill, ...attributes };
    if (shape === "circle") return svg("circle", { cx: x, cy: y, r, ...common }, parent);
    const points = {
      square: [[-1, -1], [1, -1], [1, 1], [-1, 1]].map(([a, b]) => [0.9 * a, 0.9 * b]),
      triangle: [[0, -1.2], [1.1, 0.9], [-1.1, 0.9]],
      down: [[0, 1.2], [1.1, -0.9], [-1.1, -0.9]],
      saltire: [[0, -0.5], [0.7, -1.2], [1.2, -0.7], [0.5, 0], [1.2, 0.7], [0.7, 1.2], [0, 0.5], [-0.7, 1.2], [-1.2, 0.7], [-0.5, 0],
        [-1.2, -0.7], [-0.7, -1.2]],
      diamond: [[0, -1.3], [1.1, 0], [0, 1.3], [-1.1, 0]],
      cross: [[-1.2, -0.4], [-0.4, -0.4], [-0.4, -1.2], [0.4, -1.2], [0.4, -0.4], [1.2, -0.4], [1.2, 0.4], [0.4, 0.4],
        [0.4, 1.2], [-0.4, 1.2], [-0.4, 0.4], [-1.2, 0.4]],
    }[shape];
    const list = points.map(([a, b]) => `${(x + r * a).toFixed(2)},${(y + r * b).toFixed(2)}`).join(" ");
    return svg("polygon", { points: list, ...common }, parent);
  }
  function legend(id, entries) {
    const box = byId(id);
    box.replaceChildren();
    for (const entry of entries) {
      const item = html("span", null, box);
      const picture = svg("svg", { width: 26, height: 14, "aria-hidden": "true" }, item);
      if (entry.line) {
        svg("line", { x1: 0, x2: 26, y1: 7, y2: 7, stroke: entry.colour, "stroke-width": 2, "stroke-dasharray": entry.dash || "" }, picture);
      }
      const hollow = entry.hollow ? { stroke: entry.colour, "stroke-width": 1.5 } : {};
      if (entry.mark) drawMark(picture, entry.mark, 13, 7, 5, entry.hollow ? "#fff" : entry.colour, hollow);
      html("span", entry.text, item);
    }
  }

  // ---- hover ---------------------------------------------------------------------------------------------------
  const tip = byId("tip");
  function showTip(event, text) {
    tip.textContent = text;
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, window.innerWidth - width - 8);
    const top = event.clientY + 18 + height > window.innerHeight ? event.clientY - height - 12 : event.clientY + 18;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${Math.max(8, top)}px`;
  }
  function hover(element, text, onSelect) {
    element.classList.add("hit");
    if (onSelect) selectable(element, text, onSelect);
    element.addEventListener("pointermove", (event) => showTip(event, text));
    element.addEventListener("pointerdown", (event) => showTip(event, text));
    element.addEventListener("pointerleave", () => { tip.hidden = true; });
  }
  // A mark that can be chosen with the mouse, by touch or with the keyboard.
  function selectable(element, text, onSelect) {
    const label = text.split("\n").join(", ");
    for (const [name, value] of Object.entries({ tabindex: 0, role: "button", "aria-label": `${label}. Choose.` })) element.setAttribute(name, value);
    element.addEventListener("click", onSelect);
    element.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      const marks = [...element.closest(".chart").querySelectorAll("[role=button]")];
      const chart = element.closest(".chart").id;
      onSelect();
      byId(chart).querySelectorAll("[role=button]")[marks.indexOf(element)]?.focus();
    });
    element.addEventListener("focus", () => {
      if (!element.matches(":focus-visible")) return;
      const { left, bottom } = element.getBoundingClientRect();
      showTip({ clientX: left, clientY: bottom - 12 }, text);
    });
    element.addEventListener("blur", () => { tip.hidden = true; });
  }
  document.addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });

  // A word that has a definition opens it: the longest one in the text, at its first place.
  const terms = new Map([...document.querySelectorAll("#terms dt")].map((term) => [term.textContent, term.nextElementSibling.textContent]));
  const known = new RegExp(`\\b(${[...terms.keys()].sort((a, b) => b.length - a.length).join("|")})(es|s)?(?!\\w)`);
  function say(parent, text) {
    parent.textContent = text;
    const found = known.exec(text);
    if (!found) return;
    const word = document.createElement("button");
    Object.assign(word, { type: "button", className: "term", textContent: found[0] });
    parent.replaceChildren(text.slice(0, found.index), word, text.slice(found.index + found[0].length));
    const open = (event) => showTip(event, `${found[1]}: ${terms.get(found[1]).replace(/\s+/g, " ")}`);
    const below = () => { const { left, bottom } = word.getBoundingClientRect(); open({ clientX: left, clientY: bottom - 12 }); };
    word.addEventListener("click", below);
    word.addEventListener("focus", below);
    word.addEventListener("pointerenter", open);
    for (const end of ["blur", "pointerleave"]) word.addEventListener(end, () => { tip.hidden = true; });
  }

  // ---- axes ----------------------------------------------------------------------------------------------------
  function ticks(low, high, wanted) {
    const rough = (high - low) / wanted;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough) || 10 * power;
    const found = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i += 1) found.push(i * step);
    return { values: found, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9) + (step / power === 2.5 ? 1 : 0)) };
  }
  function padded(values, share, atZero) {
    let low = Math.min(...values);
    let high = Math.max(...values);
    if (!(high > low)) { const half = 0.05 * Math.abs(high) || 1; low -= half; high += half; }
    const extra = share * (high - low);
    const bottom = atZero && low >= 0 && low < 0.5 * high ? 0 : low - extra;
    return [bottom, high + extra];
  }
  // A frame with axes; returns functions from data to pixels.
  function frame(id, options) {
    const box = byId(id);
    box.replaceChildren();
    const width = Math.max(280, box.clientWidth);
    const height = options.height(width);
    const margin = { left: 58, right: options.right || 14, top: 12, bottom: 46 };
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": `Chart: ${options.title}` }, box);
    const [x0, x1] = options.x;
    const [y0, y1] = options.y;
    const toX = (value) => margin.left + ((value - x0) / (x1 - x0)) * (width - margin.left - margin.right);
    const toY = (value) => height - margin.bottom - ((value - y0) / (y1 - y0)) * (height - margin.top - margin.bottom);
    const bottom = height - margin.bottom;
    const background = svg("g", {}, picture);
    const yTicks = ticks(y0, y1, 5);
    for (const value of yTicks.values) {
      svg("line", { class: "grid", x1: margin.left, x2: width - margin.right, y1: toY(value), y2: toY(value) }, picture);
      svg("text", { class: "tick", x: margin.left - 8, y: toY(value) + 4, "text-anchor": "end" }, picture, value.toFixed(yTicks.digits));
    }
    const xTicks = options.xTicks || ticks(x0, x1, Math.max(3, Math.floor(width / 130)));
    for (const value of xTicks.values) {
      svg("line", { class: "axis", x1: toX(value), x2: toX(value), y1: bottom, y2: bottom + 4 }, picture);
      svg("text", { class: "tick", x: toX(value), y: bottom + 18, "text-anchor": "middle" }, picture, value.toFixed(xTicks.digits));
    }
    svg("line", { class: "axis", x1: margin.left, x2: width - margin.right, y1: bottom, y2: bottom }, picture);
    svg("text", { x: (margin.left + width - margin.right) / 2, y: height - 8, "text-anchor": "middle" }, picture, options.xLabel);
    const middle = (margin.top + bottom) / 2;
    svg("text", { x: 14, y: middle, "text-anchor": "middle", transform: `rotate(-90 14 ${middle})` }, picture, options.yLabel);
    return { picture, background, toX, toY, width, height, margin, bottom };
  }
  const wide = (width) => Math.round(Math.min(380, Math.max(260, 0.42 * width)));
  const square = (width) => Math.round(Math.min(460, Math.max(280, 0.85 * width)));

  // ---- values against the number of components -----------------------------------------------------------------
  function lineSeries() {
    const shown = state.method === "PCA" ? ["PCA"] : ["PCA", state.method];
    const series = [];
    for (const method of shown) {
      groups.forEach((group, index) => {
        const points = data.dimensions.filter((d) => result(method, d)).map((d) => [d, ...result(method, d)[state.figure].groups[group.label]]);
        series.push({ method, index, points, reference: method === "PCA" });
      });
    }
    return series.filter((one) => one.points.length);
  }
  function drawGroups() {
    const series = lineSeries().map((one) => ({ ...one, label: groups[one.index].label, text: `${groups[one.index].label}, ${one.method}` }));
    const few = groups.length <= 3; // of more, intervals and names would overlap; the table and the tooltips show them
    const named = few && byId("group-chart").clientWidth >= 520;
    const values = series.flatMap((one) => one.points.flatMap((point) => (few ? point.slice(1) : point.slice(1, 2))));
    const last = data.dimensions.length - 1;
    const pad = 0.5;
    say(byId("group-title"), `Each group's ${VALUES[state.figure]}.`);
    const f = frame("group-chart", {
      title: `${VALUES[state.figure]} of each group against the number of components`, height: (width) => Math.round(Math.min(400, Math.max(210, 0.5 * width))),
      x: [data.dimensions[0] - pad, data.dimensions[last] + pad], y: padded(values, 0.05, state.figure !== "corrected_loss"),
      xTicks: { values: data.dimensions, digits: 0 }, xLabel: "number of components", yLabel: VALUES[state.figure],
      right: named ? 20 + 6.8 * Math.min(24, Math.max(...series.map((one) => one.text.length))) : 14,
    });
    const left = f.toX(state.dimension - 0.4);
    svg("rect", { class: "chosen", x: left, y: f.margin.top, width: f.toX(state.dimension + 0.4) - left, height: f.bottom - f.margin.top }, f.background);
    const ends = [];
    series.forEach((one, order) => {
      const line = one.points.map(([d, value]) => `${f.toX(d).toFixed(1)},${f.toY(value).toFixed(1)}`).join(" ");
      const paint = colour(one.index);
      // Where lines run together, the first group's is the wider one behind.
      const size = one.reference ? 1.5 : few ? 2.5 + 3.5 * (groups.length - 1 - one.index) : 2.5;
      svg("polyline", { class: "series", points: line, fill: "none", stroke: paint, "stroke-width": size, "stroke-dasharray": one.reference ? "6 4" : "" }, f.picture);
      const shift = (order - (series.length - 1) / 2) * 3;
      for (const [d, value, low, high] of one.points) {
        const x = f.toX(d) + shift;
        if (few && low !== undefined) {
          svg("line", { x1: x, x2: x, y1: f.toY(low), y2: f.toY(high), stroke: paint, "stroke-width": 1, opacity: 0.55 }, f.picture);
        }
        drawMark(f.picture, mark(one.index), x, f.toY(value), 4.5, one.reference ? "#fff" : paint, { stroke: paint, "stroke-width": 1.5 });
      }
      ends.push({ ...one, paint, y: f.toY(one.points[one.points.length - 1][1]) + 4 });
    });
    if (named) {
      ends.sort((a, b) => a.y - b.y);
      ends.forEach((one, i) => {
        if (i) one.y = Math.max(one.y, ends[i - 1].y + 16);
        svg("text", { x: f.width - f.margin.right + 8, y: one.y, class: "name" }, f.picture, shorten(one.text, 24)).style.fill = one.paint;
      });
    }
    for (const one of series) {
      for (const [d, value, low, high] of one.points) {
        const target = svg("circle", { cx: f.toX(d), cy: f.toY(value), r: 11 }, f.picture);
        const interval = low === undefined ? "" : `\ninterval ${number(low)} to ${number(high)}`;
        const text = `${one.method}, ${components(d)}\n${one.label}: ${VALUES[state.figure]} ${number(value)}${interval}`;
        hover(target, text, () => choose({ dimension: d }));
      }
    }
    legend("group-legend", named ? [] : series.map((one) => ({
      text: one.text, colour: colour(one.index), mark: mark(one.index), line: true, dash: one.reference ? "6 4" : "", hollow: one.reference,
    })));
  }
  // The verdict on the chosen number of components.
  function drawVerdict() {
    const said = data.verdicts[state.dimension];
    if (!said) return;
    byId("finding").textContent = said.finding;
    byId("remedy").textContent = `${said.doubt} ${said.remedy}`.trim();
    byId("advice").textContent = said.advice;
    byId("readable").textContent = said.readable;
    const box = byId("numbers");
    box.replaceChildren();
    for (const [title, text, meaning] of said.numbers) {
      const [value, ...rest] = text.split(" ");
      const tile = html("div", null, box);
      say(html("dt", null, tile), title);
      const main = html("dd", null, tile);
      html("b", value, main);
      say(html("span", null, main), ` interval ${rest.join(" ").slice(1, -1)}`);
      if (meaning) html("small", meaning, main);
    }
  }

  // ---- frontier ------------------------------------------------------------------------------------------------
  function drawFrontier() {
    const curve = data.frontiers[state.dimension];
    const spots = data.methods.map((method, index) => ({ method: method.name, index, figures: result(method.name, state.dimension) }))
      .filter((spot) => spot.figures).map((spot) => ({ ...spot, gap: spot.figures.spot[0], total: spot.figures.spot[1] }));
    const f = frame("frontier-chart", {
      title: "total error against the gap between the groups' errors", height: wide,
      x: padded([...curve.gap, ...spots.map((spot) => spot.gap)], 0.05, true),
      y: padded([...curve.total, ...spots.map((spot) => spot.total)], 0.08, false),
      xLabel: "gap between the groups' errors", yLabel: "error of all rows",
    });
    const line = curve.gap.map((gap, i) => `${f.toX(gap).toFixed(1)},${f.toY(curve.total[i]).toFixed(1)}`).join(" ");
    svg("polyline", { class: "series", points: line, fill: "none", stroke: "#5a6068", "stroke-width": 2.5, "stroke-dasharray": curve.exact ? "" : "6 4" }, f.picture);
    curve.gap.forEach((gap, i) => {
      hover(svg("circle", { cx: f.toX(gap), cy: f.toY(curve.total[i]), r: 8 }, f.picture), `Frontier\ngap ${number(gap)}\nerror of all rows ${number(curve.total[i])}`);
    });
    for (const spot of spots) {
      const chosen = spot.method === state.method;
      const hollow = spot.method === "PCA";
      const paint = methodColour(spot.method);
      drawMark(f.picture, methodMark(spot.method), f.toX(spot.gap), f.toY(spot.total), chosen ? 8 : 5.5, hollow ? "#fff" : paint, { stroke: hollow ? paint : "#fff", "stroke-width": hollow ? 2 : 1.2, class: "spot" });
      const target = svg("circle", { cx: f.toX(spot.gap), cy: f.toY(spot.total), r: 12 }, f.picture);
      hover(target, `${spot.method}\ngap ${number(spot.gap)}\nerror of all rows ${number(spot.total)}`, () => choose({ method: spot.method }));
    }
    legend("frontier-legend", [
      { text: curve.exact ? "frontier (exact)" : "frontier (best found)", colour: "#5a6068", line: true, dash: curve.exact ? "" : "6 4" },
      ...spots.map((spot) => ({ text: spot.method, colour: methodColour(spot.method), mark: methodMark(spot.method), hollow: spot.method === "PCA" })),
    ]);
    byId("frontier-note").textContent = (curve.exact
      ? `With ${components(state.dimension)}, no projection lies below the line: it is the least error over all rows for every gap between the groups' errors, from ordinary PCA at one end to the smallest gap at the other. `
      : `With ${components(state.dimension)} and more than two groups: the best projections found as the weight of the gap increases. `)
      + "The smallest gap may be reached by making the better-served group worse off, so look at both errors. FairPCA balances losses rather than errors and the parity methods balance neither, so they need not lie on the line.";
  }

  // ---- projection and biplot -----------------------------------------------------------------------------------
  function drawProjection() {
    const scores = data.points.scores[`${state.method}|${state.dimension}`];
    const note = byId("projection-note");
    legend("projection-legend", []);
    byId("projection-chart").replaceChildren();
    if (!scores) { note.textContent = "Individual rows were left out of this report."; return; }
    const flat = scores.length < 2;
    note.textContent = `${state.method}, ${components(state.dimension)}: `
      + (flat ? "scores on the only component; the height of a mark only separates the groups. " : "scores on the first two components. ")
      + `${scores[0].length} rows drawn at random; large marks are the means of the groups among them.`;
    const many = groups.length;
    const spread = scores[0].map((_, i) => data.points.groups[i] + 0.7 * ((i * 0.618034) % 1) - 0.35);
    const ys = flat ? spread : scores[1];
    const f = frame("projection-chart", {
      title: "scores of a sample of rows, by group", height: square, x: padded(scores[0], 0.05), y: flat ? [-0.6, many - 0.4] : padded(ys, 0.05),
      xLabel: "component 1", yLabel: flat ? "group" : "component 2",
    });
    scores[0].forEach((x, i) => {
      const g = data.points.groups[i];
      drawMark(f.picture, mark(g), f.toX(x), f.toY(ys[i]), 3, colour(g), { "fill-opacity": 0.5, class: "row" });
    });
    groups.forEach((group, g) => {
      const own = scores[0].map((_, i) => i).filter((i) => data.points.groups[i] === g);
      if (!own.length) return;
      const mean = (values) => own.reduce((sum, i) => sum + values[i], 0) / own.length;
      const target = drawMark(f.picture, mark(g), f.toX(mean(scores[0])), f.toY(mean(ys)), 9, colour(g), { stroke: "#fff", "stroke-width": 2 });
      hover(target, `${group.label}: mean of ${own.length} rows drawn`);
      target.classList.remove("hit");
    });
    legend("projection-legend", groups.map((group, g) => ({ text: group.label, colour: colour(g), mark: mark(g) })));
  }
  function drawBiplot() {
    const { loadings } = result(state.method, state.dimension);
    const flat = loadings.length < 2;
    const arrows = data.features.map((name, j) => ({ name, x: loadings[0][j], y: flat ? 0 : loadings[1][j] }))
      .map((arrow) => ({ ...arrow, size: Math.hypot(arrow.x, arrow.y) })).sort((a, b) => b.size - a.size).slice(0, 10);
    if (flat) { drawLoadings(arrows); return; }
    byId("biplot-note").textContent = `${state.method}, ${components(state.dimension)}: the ten features with the longest arrows on the first two components. Arrow: a feature's weights, scaled by the spread of the scores. Hover over its tip for the full name.`;
    const reach = 1.45 * Math.max(1e-9, ...arrows.flatMap((arrow) => [Math.abs(arrow.x), Math.abs(arrow.y)]));
    const f = frame("biplot-chart", { title: "loadings on the first two components", height: square, x: [-reach, reach], y: [-reach, reach], xLabel: "component 1", yLabel: "component 2" });
    svg("line", { class: "axis", x1: f.toX(-reach), x2: f.toX(reach), y1: f.toY(0), y2: f.toY(0) }, f.picture);
    svg("line", { class: "axis", x1: f.toX(0), x2: f.toX(0), y1: f.toY(-reach), y2: f.toY(reach) }, f.picture);
    const taken = [];
    for (const arrow of arrows) {
      const [x, y] = [f.toX(arrow.x), f.toY(arrow.y)];
      svg("line", { class: "arrow", x1: f.toX(0), y1: f.toY(0), x2: x, y2: y, stroke: colour(0), "stroke-width": 1.8 }, f.picture);
      drawMark(f.picture, "circle", x, y, 3.5, colour(0));
      hover(svg("circle", { cx: x, cy: y, r: 11 }, f.picture), `${arrow.name}\ncomponent 1: ${number(arrow.x)}\ncomponent 2: ${number(arrow.y)}`);
      labelArrow(f, arrow, x, y, taken);
    }
  }
  // A label next to the tip, moved away from labels already placed; dropped if there is no room.
  function labelArrow(f, arrow, x, y, taken) {
    const text = shorten(arrow.name, 22);
    const width = 6.6 * text.length;
    const right = x > f.toX(0);
    let left = right ? x + 7 : x - 7 - width;
    left = Math.min(Math.max(left, f.margin.left), f.width - f.margin.right - width);
    for (const shift of [4, -8, 16, -20, 28]) {
      const box = { left, right: left + width, top: y + shift - 11, bottom: y + shift + 3 };
      if (taken.some((other) => box.left < other.right && other.left < box.right && box.top < other.bottom && other.top < box.bottom)) continue;
      taken.push(box);
      svg("text", { x: left, y: y + shift, class: "halo", "paint-order": "stroke", stroke: "#fff", "stroke-width": 3 }, f.picture, text);
      return;
    }
  }
  const shorten = (name, limit) => (name.length > limit ? `${name.slice(0, limit - 1)}…` : name);
  function drawLoadings(arrows) {
    byId("biplot-note").textContent = `${state.method}, 1 component: the ten features with the largest weights.`;
    bars("biplot-chart", arrows.map((arrow) => ({ name: arrow.name, value: arrow.x })), "weight, scaled by the spread of the scores");
  }

  // ---- bars ----------------------------------------------------------------------------------------------------
  function bars(id, entries, xLabel) {
    const box = byId(id);
    box.replaceChildren();
    const width = Math.max(280, box.clientWidth);
    const row = 24;
    const nameWidth = Math.min(220, Math.round(0.4 * width));
    const height = entries.length * row + 46;
    const listed = entries.map((entry) => `${entry.name} ${number(entry.value)}`).join("; ");
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `Chart: ${xLabel}. ${listed}` }, box);
    const values = entries.flatMap((entry) => [entry.value, entry.reference ?? entry.value]);
    const low = Math.min(0, ...values);
    const high = Math.max(low + 1e-9, ...values, 0);
    const paired = entries.some((entry) => entry.reference !== undefined);
    const column = paired ? 104 : 56;
    const toX = (value) => nameWidth + 10 + ((value - low) / (high - low)) * (width - nameWidth - column - 16);
    const bottom = entries.length * row + 4;
    const axis = ticks(low, high, Math.max(3, Math.floor(width / 150)));
    for (const value of axis.values) {
      svg("line", { class: "grid", x1: toX(value), x2: toX(value), y1: 0, y2: bottom }, picture);
      svg("text", { class: "tick", x: toX(value), y: bottom + 15, "text-anchor": "middle" }, picture, value.toFixed(axis.digits));
    }
    if (paired) svg("text", { class: "tick", x: width, y: bottom + 15, "text-anchor": "end" }, picture, "chosen / PCA");
    svg("text", { x: (nameWidth + width - column) / 2, y: height - 6, "text-anchor": "middle" }, picture, xLabel);
    entries.forEach((entry, i) => {
      const y = i * row;
      svg("text", { x: nameWidth, y: y + 16, "text-anchor": "end" }, picture, shorten(entry.name, Math.floor(nameWidth / 6.8)));
      const [from, to] = [toX(Math.min(0, entry.value)), toX(Math.max(0, entry.value))];
      svg("rect", { class: "bar", x: from, y: y + 5, width: Math.max(0.5, to - from), height: row - 10, fill: colour(0) }, picture);
      if (entry.reference !== undefined) {
        const x = toX(entry.reference);
        svg("line", { x1: x, x2: x, y1: y + 2, y2: y + row - 2, stroke: methodColour("PCA"), "stroke-width": 3 }, picture);
      }
      const figures = entry.reference === undefined ? number(entry.value) : `${entry.value.toFixed(3)} / ${entry.reference.toFixed(3)}`;
      svg("text", { class: "tick", x: width, y: y + 16, "text-anchor": "end" }, picture, figures);
      const text = entry.reference === undefined ? `${entry.name}\n${number(entry.value)}` : `${entry.name}\n${state.method}: ${number(entry.value)}\nPCA: ${number(entry.reference)}`;
      hover(svg("rect", { x: 0, y, width, height: row }, picture), text);
    });
  }
  function drawCommunality() {
    const own = result(state.method, state.dimension).communality;
    const reference = result("PCA", state.dimension);
    const entries = data.features.map((name, j) => ({ name, value: own[j], reference: reference ? reference.communality[j] : undefined }))
      .sort((a, b) => Math.max(b.value, b.reference ?? 0) - Math.max(a.value, a.reference ?? 0));
    const button = byId("all-features");
    button.hidden = entries.length <= 15;
    button.textContent = state.allFeatures ? "Show the 15 largest" : `Show all ${entries.length} features`;
    bars("communality-chart", state.allFeatures ? entries : entries.slice(0, 15), "communality");
  }

  // ---- tables --------------------------------------------------------------------------------------------------
  function table(id, heads, rows) {
    const element = byId(id);
    element.replaceChildren();
    const top = html("tr", null, html("thead", null, element));
    for (const head of heads) {
      const cell = html("th", null, top);
      cell.scope = "col";
      say(cell, head);
    }
    const body = html("tbody", null, element);
    for (const row of rows) {
      const line = html("tr", null, body);
      if (row.chosen) line.className = "chosen";
      row.cells.forEach((cell, column) => {
        const [main, ...below] = Array.isArray(cell) ? cell : [cell];
        const entry = html(column ? "td" : "th", main, line);
        if (!column) entry.scope = "row";
        for (const small of below) if (small) html("small", small, entry);
      });
    }
  }
  // A visible hint where a table is wider than the page.
  function drawHints() {
    for (const box of document.querySelectorAll(".scroll")) {
      box.classList.toggle("wide", box.scrollWidth > box.clientWidth + 1);
    }
  }
  function present() {
    return data.methods.map((method) => ({ ...method, figures: result(method.name, state.dimension) })).filter((method) => method.figures);
  }
  function drawGroupTable() {
    const ordinary = result("PCA", state.dimension);
    const method = ordinary ? "PCA" : state.method;
    const figures = ordinary || result(method, state.dimension);
    const expected = data.expected_losses[state.dimension];
    const p = ordinary && data.p[state.dimension].length ? data.p[state.dimension] : null;
    byId("group-choice").textContent = `${ordinary ? "Ordinary PCA" : method}, ${components(state.dimension)}`;
    table("group-table", ["group", "rows", "rows held out", "error on new rows", "loss in the sample", ...(ordinary ? ["expected by chance"] : []), "loss on new rows", ...(p ? ["adjusted p"] : [])],
      groups.map(({ label, count, heldOut }, index) => ({
        cells: [label, count.toLocaleString("en"), heldOut.toLocaleString("en"), withRange(figures.error.groups[label]), number(figures.loss.groups[label][0]),
          ...(ordinary ? [number(expected[label])] : []), withRange(figures.corrected_loss.groups[label]), ...(p ? [p[index]] : [])],
      })));
    byId("outvoted").textContent = data.outvoted;
  }
  function drawInfluence() {
    const list = byId("influence");
    list.replaceChildren();
    for (const sentence of data.rests[state.dimension]) html("li", sentence, list);
    byId("no-influence").hidden = data.rests[state.dimension].length > 0;
  }
  function drawProxies() {
    const found = data.proxies;
    byId("proxies-section").hidden = !found.sentence;
    byId("proxies-sentence").textContent = found.sentence;
    byId("proxies-scroll").hidden = !found.rows.length;
    table("proxies-table", ["feature alone", "AUC", "95 % interval", "groups told apart best", "rows of the smaller group"], found.rows.map((cells) => ({ cells })));
  }
  const withRange = (figure) => [number(figure[0]), range(figure)];
  const changeOf = (method, label) => {
    const figure = method.figures.change.groups[label];
    return method.name === "PCA" ? "–" : [signed(figure[0]), range(figure)];
  };
  // One row per method; with many groups, one row per group.
  function drawTables() {
    byId("table-choice").textContent = `${components(state.dimension)}; the chosen method is marked`;
    const value = VALUES[state.figure];
    const columns = [
      ...groups.map(({ label }) => [`${state.figure === "error" ? "error" : "loss"} of ${label}`, (method) => withRange(method.figures[state.figure].groups[label])]),
      [gapNames[state.figure], (method) => withRange(method.figures[state.figure].gap)],
      ...groups.map(({ label }) => [`error of ${label} against PCA`, (method) => changeOf(method, label)]),
      ["explained variance", (method) => percent(method.figures.explained_variance)],
      ["certificate", certificate],
    ];
    const methods = present();
    if (groups.length > 3) {
      table("quality-table", ["", ...methods.map(({ name }) => (name === state.method ? `${name} (chosen)` : name))], columns.map(([head, cell]) => ({ cells: [head, ...methods.map(cell)] })));
    } else {
      table("quality-table", ["method", ...columns.map(([head]) => head)], methods.map((method) => ({ chosen: method.name === state.method, cells: [method.name, ...columns.map(([, cell]) => cell(method))] })));
    }
    const split = methods.filter((method) => method.figures.n_folds === 1).map((method) => method.name);
    say(byId("quality-note"), `Shown: ${value}. Below values, an interval: that of a group alone, that of a gap or a change for all of these together. `
      + "Against PCA: how the method changes a group's error on new rows; a negative change is better for the group. "
      + (split.length ? `${split.join(", ")}: evaluated on one held-out part of the rows; the others by cross-validation on all rows.` : ""));
    const shown = present();
    const optional = [["auc", "AUC of boosting", "auc_random"], ["mmd2", "MMD²", "mmd2_random"], ["adversary", "adversary", "adversary_random"], ["accuracy", `accuracy for “${data.label ? data.label.name : "label"}”`],
      ...["demographic_parity", "equal_opportunity", "equalized_odds"].map((key) => [key, `Δ ${key.replace("_", " ")}`])]
      .filter(([key]) => shown.some((method) => (key in DECIDED ? method.figures.held_out.decisions : method.figures.held_out[key]) !== null));
    table("held-out-table", ["method", "explained variance", ...optional.map(([, head]) => head)], shown.map((method) => ({
      chosen: method.name === state.method,
      cells: [method.name, percent(method.figures.held_out.explained_variance), ...optional.map(([key, , level]) => heldOut(method.figures.held_out, key, level))],
    })));
    byId("few-rows").textContent = data.few_rows;
    byId("held-out-note").textContent = optional.some(([key]) => key === "accuracy") ? "Accuracy: of a logistic regression that predicts the label from the scores; below it, that of always predicting the most frequent class. The differences Δ are between the groups in its decisions, with intervals that hold for all of these together and the rows of the smallest group behind them; with fewer than 20 there is no value." : "";
    drawDecisions();
  }
  function drawDecisions() {
    const figures = result(state.method, state.dimension);
    const decisions = figures && figures.held_out.decisions;
    byId("decisions").hidden = !decisions;
    if (!decisions) return;
    const { selected, true_positive: hits, false_positive: alarms } = decisions.rates;
    table("decisions-table", ["group", "held-out rows", "positive decisions", `of rows that are “${decisions.positive}”`, "of the other rows"],
      groups.map(({ label }) => ({ cells: [label, selected[label].rows.toLocaleString("en"), ...[selected, hits, alarms].map((rates) => rate(rates[label]))] })));
    byId("decisions-note").textContent = `${state.method}, ${components(state.dimension)}. The label is “${data.label ? data.label.name : "label"}”, its positive class “${decisions.positive}”. Always predicting the most frequent class is right in ${percent(figures.held_out.baseline)} of these rows, the classifier in ${percent(figures.held_out.accuracy)}. Below each share: the rows it rests on, and a 95 % interval. `
      + "Groups are compared only where every rate rests on 20 rows or more.";
  }
  function rate(one) {
    if (one.rows === 0) return "no rows";
    return [percent(one.value), `${one.count.toLocaleString("en")} of ${one.rows.toLocaleString("en")} rows`, `${percent(one.low)} to ${percent(one.high)}`];
  }
  function heldOut(figures, key, level) {
    const value = figures[key];
    if (key === "accuracy") return [percent(value), `baseline ${percent(figures.baseline)}`];
    if (key in DECIDED) {
      if (!figures.decisions) return "–";
      const { value: difference, low, high, rows } = figures.decisions.differences[key];
      return difference === null ? `too few rows (${rows})` : [difference.toFixed(3), `${low.toFixed(3)} to ${high.toFixed(3)}`, `${rows.toLocaleString("en")} rows`];
    }
    const main = key === "mmd2" ? number(value) : value === null ? "–" : value.toFixed(3);
    if (key === "auc") {
      const [first, second] = figures.auc_between;
      const between = groups.length > 2 ? `${first} against ${second === "rest" ? "the rest" : second}: ` : "";
      return [main, `${figures.auc_low.toFixed(3)} to ${figures.auc_high.toFixed(3)}`, `random ${figures[level].toFixed(3)}`, `${between}${figures.auc_rows.toLocaleString("en")} rows`];
    }
    return level ? [main, `random ${key === "mmd2" ? number(figures[level]) : figures[level].toFixed(3)}`] : main;
  }
  function certificate(method) {
    const { certificate: gap } = method.figures;
    if (method.name === "PCA") return "closed form";
    if (gap === null) return method.figures.converged ? "no bound" : "not converged";
    const size = `gap ${gap < 1e-16 ? "0" : gap.toExponential(0)}`;
    return gap < 1e-6 ? ["optimal", "for its own criterion, on these rows", size] : ["bound, not tight", size];
  }
  function drawMethods() {
    const box = byId("methods");
    box.replaceChildren();
    for (const method of present()) {
      const article = html("article", null, box);
      const head = html("h3", `${method.name} `, article);
      const family = html("span", `(${method.family})`, head);
      family.className = "family";
      html("p", method.aim, article);
      html("p", `What it optimises: ${method.objective}`, article);
      html("code", method.figures.parameters, html("p", null, article));
      html("p", proof(method), article);
      for (const note of method.figures.notes) html("p", `Note: ${note}`, article).className = "warning";
    }
  }
  function proof(method) {
    const { objective, lower_bound: bound, certificate: gap } = method.figures;
    if (method.name === "PCA") return "The optimum in closed form: optimal for this objective, whatever it means for a group.";
    if (gap === null) return "No bound is available: a stationary point, the best of the starts tried.";
    const size = gap < 1e-16 ? "0" : gap.toExponential(0);
    const closed = gap < 1e-6
      ? "proven optimal: no projection has a better value of this objective on these rows. That says nothing about another objective, nor about new rows"
      : "the bound comes from a relaxation, so the distance to the optimum is at most this";
    return `Objective ${number(objective)}, bound that no projection can beat ${number(bound)}: a gap of ${size} of the total variance (${closed}).`;
  }

  // ---- controls ------------------------------------------------------------------------------------
  function option(select, value, text) {
    const entry = html("option", text, select);
    entry.value = value;
  }
  function choose(change) {
    Object.assign(state, change);
    if (!result(state.method, state.dimension)) state.method = present()[0].name;
    byId("dimension").value = String(state.dimension);
    byId("method").value = state.method;
    byId("figure").value = state.figure;
    draw();
  }
  function draw() {
    tip.hidden = true;
    drawVerdict();
    drawGroupTable();
    drawInfluence();
    drawProxies();
    drawGroups();
    drawTables();
    drawFrontier();
    drawProjection();
    drawBiplot();
    drawCommunality();
    drawMethods();
    drawHints();
  }
  for (const d of data.dimensions) option(byId("dimension"), String(d), String(d));
  for (const method of data.methods) option(byId("method"), method.name, method.name);
  for (const [value, text] of Object.entries(VALUES)) option(byId("figure"), value, text);
  byId("dimension").addEventListener("change", (event) => choose({ dimension: Number(event.target.value) }));
  byId("method").addEventListener("change", (event) => choose({ method: event.target.value }));
  byId("figure").addEventListener("change", (event) => choose({ figure: event.target.value }));
  byId("all-features").addEventListener("click", () => choose({ allFeatures: !state.allFeatures }));
  let width = window.innerWidth;
  window.addEventListener("resize", () => { if (window.innerWidth !== width) { width = window.innerWidth; draw(); } });
  window.addEventListener("beforeprint", () => {
    for (const folded of document.querySelectorAll("details")) folded.open = true;
    draw();
  });
  choose({});
})();
