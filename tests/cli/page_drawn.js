// SPDX-License-Identifier: MIT
// Compares everything that a page draws and writes, in every mode and view and after every switch from one mode to
// another, with the recording's JSON (page_model.js), and with the same page newly opened at the same address, which
// cannot have kept any state. A hook on the canvas's context records what is drawn. Usage: node page_drawn.js CHROMIUM
// PAGE.html DATA.json [PAGE.html DATA.json]... Exit code 0 or 1.
"use strict";
const assert = require("assert");
const {send, evaluate, text, open, press, point, click, middle, run, keyed} = require("./browser.js");
const model = require("./page_model.js");
const VIEWS = ["icicle", "flame", "sandwich", "methods"], LABEL_MIN = 26, ROW = 19;
let checked = 0;
const changes = {count: 0};

const HOOK = `{
  const proto = CanvasRenderingContext2D.prototype;
  const hook = (name, note) => {
    const real = proto[name];
    proto[name] = function(...a) {
      note(this.canvas, this, a);
      return real.apply(this, a);
    };
  };
  hook("clearRect", canvas => { canvas.drawn = []; });
  hook("fillRect", (canvas, ink, [x, y, w, h]) =>
    (canvas.drawn ??= []).push({x, y, w, h, color: ink.fillStyle, alpha: ink.globalAlpha}));
  hook("fillText", (canvas, ink, [text, x, y]) =>
    (canvas.drawn ??= []).push({text, x, y, color: ink.fillStyle, alpha: ink.globalAlpha}));
}`;

const drawn = id => evaluate(`document.querySelector("#${id} canvas").drawn ?? []`);

// The boxes that are wide enough for a name, by rows from the root on: {text, x, w, color, alpha, y}.
function rowsOf(ops, upward) {
  const rows = new Map();
  ops.forEach((op, i) => {
    const label = ops[i + 1];
    if (op.h !== ROW - 1 || op.w < LABEL_MIN - 1 || label?.text === undefined) return;
    rows.set(op.y, [...(rows.get(op.y) ?? []), {...op, text: label.text, label}]);
  });
  return [...rows.keys()].sort((a, b) => upward ? b - a : a - b).map(y => rows.get(y));
}

// Whether the text in a box is the name, or what a reader takes for a shorter form of it: the words are the name's, in
// order, and the last one may be cut. A name that has room must be there in full.
function isNameOf(text, name, width, letter) {
  if (name.length * letter < width - 10) return text === name;
  const words = of => of.replace(/^\[lib(.*)\.so[.\d]*\]$/, "[$1]").match(/\w+|[^\w.\s]/g) ?? [];
  const all = words(name), cut = text.endsWith("…"), parts = words(text.replace(/…$/, ""));
  let at = 0;
  return parts.every((part, i) => {
    while (at < all.length && !(all[at] === part || (cut && i === parts.length - 1 && all[at].startsWith(part)))) at++;
    return at++ < all.length;
  }) && (parts.length > 0 || cut || width < 6 * letter);
}

// Whether the text is the frame's name, and, in a comparison, by how much it has grown or shrunk, in points of the whole.
function isLabelOf(ctx, node, box, name) {
  const {mode, letter} = ctx, width = box.w + 1;
  if (!mode.diff) return isNameOf(box.text, name, width, letter);
  const points = 100 * (node.total - node.before) / ctx.whole;
  const [, text, change] = /^([^]*?)(?: ([+−][0-9.]+) %)?$/.exec(box.text);
  if (change) {
    ctx.changes.count++;
    return Math.abs(Number(change.replace("−", "-")) - points) < 0.0051 && isNameOf(text, name, width - 9 * letter, letter);
  }
  const room = Math.abs(points) >= 0.006 && (name.length + 9) * letter < width - 12;
  return !room && isNameOf(text, name, width, letter);
}

// The boxes of a row and of those below it are the nodes': each box has the name and the width of one node.
function match(ctx, nodes, row, left, right) {
  if (row >= ctx.visible) return true;  // below or above what can be seen
  const boxes = (ctx.rows[row] ?? []).filter(({x, w}) => x >= left - 0.6 && x + w <= right + 0.6);
  const wide = nodes.filter(node => node.total * ctx.scale >= LABEL_MIN + 0.01);
  if (boxes.length !== wide.length) {
    ctx.why ??= `row ${row}: ${boxes.length} boxes (${boxes.map(b => b.text)}) for ` +
      `${wide.length} frames (${wide.map(n => model.nameOf(ctx.mode, n.frame))})`;
    return false;
  }
  const assign = (i, used) => i === boxes.length || wide.some((node, k) => {
    const box = boxes[i], name = model.nameOf(ctx.mode, node.frame);
    if (used.has(k) || Math.abs(box.w + 1 - node.total * ctx.scale) > 0.6 ||
        !isLabelOf(ctx, node, box, name)) return false;
    if (!match(ctx, [...node.children.values()], row + 1, box.x, box.x + box.w)) return false;
    if (!assign(i + 1, new Set([...used, k]))) return false;
    ctx.found.push({box, node, name});
    return true;
  });
  if (assign(0, new Set())) return true;
  ctx.why ??= `row ${row}: ${JSON.stringify(boxes)} is not ` +
    JSON.stringify(wide.map(n => [model.nameOf(ctx.mode, n.frame), n.total * ctx.scale]));
  return false;
}

// One of the page's charts. nodes: what its first row shows. Returns the node of each box.
async function checkChart(mode, id, nodes, {total, upward, skip}) {
  const ops = await drawn(id), rows = rowsOf(ops, upward);
  const [width, height, letter] = await evaluate(`(() => {
    const ink = document.createElement("canvas").getContext("2d");
    ink.font = FONT;
    const {clientWidth, clientHeight} = document.getElementById("${id}");
    return [clientWidth, clientHeight, ink.measureText("m").width];
  })()`);
  const page = await evaluate("look.pageColor()");
  for (const box of rows.flat()) {
    const has = contrast(box, box.label, page);
    assert(has >= 4.5, `${box.text}: a contrast of ${has.toFixed(2)}, ${JSON.stringify(box)}`);
  }
  const sum = key => mode.stacks.reduce((all, stack) => all + stack[key], 0);
  const ctx = {mode, rows, letter, whole: Math.max(sum("weight"), sum("before")), changes, scale: width / total,
    found: [], visible: Math.floor(height / ROW) - !skip};
  if (!skip && total > 0) {
    const [[root]] = rows, tree = nodes[0];
    assert.strictEqual(root.text, `all threads · ${model.amountAndSamples(mode, tree.total, tree.samples)}`);
    nodes = [...tree.children.values()];
    rows.shift();
  }
  assert(match(ctx, nodes, 0, 0, width), `${mode.facts.mode}, ${id}: ${ctx.why}`);
  const boxes = rows.slice(0, Math.max(0, ctx.visible)).reduce((sum, row) => sum + row.length, 0);
  assert.strictEqual(ctx.found.length, boxes, `${mode.facts.mode}, ${id}: boxes that are nobody's: ${ctx.why}`);
  checked += boxes;
  return ctx.found;
}

// The contrast of a text over a box over the page, as WCAG has it.
function contrast(box, label, page) {
  const rgb = text => text.match(/\w\w/g).map(v => parseInt(v, 16) / 255);
  const over = (color, alpha, under) => color.map((v, i) => alpha * v + (1 - alpha) * under[i]);
  const light = color => color.map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const under = over(rgb(box.color), box.alpha, rgb(page));
  const [a, b] = [light(under), light(over(rgb(label.color), label.alpha, under))].sort((x, y) => y - x);
  return (a + 0.05) / (b + 0.05);
}

function hue(color) {
  const [r, g, b] = color.match(/\w\w/g).map(v => parseInt(v, 16) / 255);
  const most = Math.max(r, g, b), span = most - Math.min(r, g, b);
  if (span === 0) return 0;
  return 60 * (most === r ? (g - b) / span + 6 : most === g ? (b - r) / span + 2 : (r - g) / span + 4) % 360;
}

async function checkColors(mode, found) {
  if (mode.diff) return;
  const palette = await evaluate("PALETTE");
  for (const {box, node, name} of found) {
    if (node.frame >= mode.names.length) continue;  // a folded box
    const [wanted] = palette[mode.kindOf[node.frame]], off = Math.abs((hue(box.color) - wanted + 540) % 360 - 180);
    assert(off <= 8 || palette[mode.kindOf[node.frame]][1] < 15, `${name}: hue ${hue(box.color)}, not ${wanted}`);
  }
}

// Hovers over the widest boxes.
async function checkTooltips(mode, id, found, total) {
  const {x, y} = await evaluate(`(({x, y}) => ({x, y}))(document.querySelector("#${id} canvas").getBoundingClientRect())`);
  for (const {box, node, name} of [...found].sort((a, b) => b.box.w - a.box.w).slice(0, 5)) {
    await point("mouseMoved", {x: x + box.x + box.w / 2, y: y + box.y + ROW / 2});
    const share = `${model.percent(node.total, total)} of ${mode.facts.whole}`;
    const amount = model.amountAndSamples(mode, node.total, node.samples);
    assert.strictEqual(await evaluate('document.querySelector("#tooltip b").textContent'), name);
    assert((await text("tooltip")).includes(`total${amount}${share}`), `${name}: ${await text("tooltip")}`);
    assert((await text("status")).startsWith(`${name} · ${amount} · ${share}`), `${name}: ${await text("status")}`);
  }
}

async function checkFlame(mode, upward) {
  const tree = model.wholeTree(mode);
  const found = await checkChart(mode, "scroller", [tree], {total: tree.total, upward, skip: 0});
  await checkColors(mode, found);
  await checkTooltips(mode, "scroller", found, tree.total);
}

async function checkSandwich(mode) {
  const total = model.wholeTree(mode).total, name = await text("pick");
  if (total === 0) {
    assert.deepStrictEqual([name, rowsOf(await drawn("callers")), rowsOf(await drawn("callees"))], ["no method", [], []]);
    return;
  }
  const frame = mode.names.findIndex((n, i) => n === name && model.methodsOf(mode).some(row => row.frame === i));
  assert(frame >= 0, `${mode.facts.mode}: a sandwich of ${name}, which is not in it`);
  for (const [id, of] of [["callers", model.callersOf], ["callees", model.calleesOf]]) {
    const tree = of(mode, frame);
    const found = await checkChart(mode, id, [...tree.children.values()],
      {total: tree.total, upward: id === "callers", skip: 1});
    await checkColors(mode, found);
    await checkTooltips(mode, id, found, total);
    if (id === "callees") {
      assert.strictEqual(await text("pick-share"),
        `${model.amountAndSamples(mode, tree.total, tree.samples)} · ${model.percent(tree.total, total)} of ${mode.facts.whole}`);
    }
  }
}

async function checkMethods(mode) {
  const total = model.wholeTree(mode).total, before = mode.stacks.reduce((sum, stack) => sum + stack.before, 0);
  const rows = await evaluate(`[...document.querySelectorAll("#methods tr[data-index]")].map(row => {
    const cell = id => row.querySelector("td." + id);
    return {full: cell("name").title, name: cell("name").textContent, total: cell("total").textContent,
      about: cell("total").title, self: cell("self").textContent, was: cell("totalBefore")?.textContent};
  })`);
  const wanted = model.methodsOf(mode), count = await evaluate("table.rows.length");
  assert.strictEqual(count, wanted.length);
  const pool = wanted.map(row => ({full: mode.names[row.frame], total: model.percent(row.total, total),
    self: model.percent(row.self, total), about: model.amountAndSamples(mode, row.total, row.totalSamples)}));
  for (const row of rows) {
    const at = pool.findIndex(one => ["full", "total", "self", "about"].every(key => one[key] === row[key] ||
      (row[key] === "<0.01 %" && one[key] === "0.00 %") || (one[key].startsWith("NaN") && row[key] === "0 %")));
    assert(at >= 0, `${mode.facts.mode}, methods: ${JSON.stringify(row)} is none of ${JSON.stringify(pool.slice(0, 8))}`);
    assert(isNameOf(row.name, row.full, 0, 1) || row.name === row.full, `${row.name} for ${row.full}`);
    pool.splice(at, 1);
    checked++;
  }
  assert(rows.length === count || rows.length >= 10, `${rows.length} rows of ${count}`);
  if (before > 0) assert(rows.every(({was}) => was !== undefined), "a comparison without what was before");
}

async function checkTimeline(mode) {
  const hidden = await evaluate('document.getElementById("heat").hidden');
  assert.strictEqual(hidden, mode.samples.length === 0);
  if (hidden) return;
  const ops = await drawn("heat"), {columns, labelWidth, box} = await evaluate(`({columns: heat.columns,
    labelWidth: heat.labelWidth, box: (({x, y}) => ({x, y}))(heat.canvas.getBoundingClientRect())})`);
  const {rows, cells} = model.cellsOf(mode, columns), names = ["all threads", ...rows.map(i => model.threadName(mode.threads[i]))];
  const shown = ops.filter(op => op.text !== undefined && op.x === 12).map(op => op.text);
  shown.forEach((label, i) => assert(label === names[i] || (label.endsWith("…") && names[i].startsWith(label.slice(0, -1))),
    `${mode.facts.mode}, timeline: ${label} is not ${names[i]}`));
  assert(shown.length === names.length || shown.length >= 8, `timeline: ${shown} of ${names}`);
  const there = new Set(ops.filter(op => op.w === 4 && op.h === 14)
    .map(op => `${Math.round((op.y - 22) / 15)},${Math.round((op.x - labelWidth) / 4)}`));
  const wanted = [...cells.keys()].filter(key => Number(key.split(",")[0]) < shown.length);
  assert.deepStrictEqual([...there].sort(), wanted.sort(), `${mode.facts.mode}: the timeline's cells`);
  for (const key of [wanted[0], wanted[wanted.length - 1]]) {
    const [row, column] = key.split(",").map(Number), {weight, samples} = cells.get(key);
    if (row >= 8) continue;
    await point("mouseMoved", {x: box.x + labelWidth + 4 * column + 2, y: box.y + 22 + 15 * row + 7});
    assert((await text("status")).startsWith(`${names[row]} · `), await text("status"));
    const amount = samples > 0 ? model.amountAndSamples(mode, weight, samples) : model.amount(mode, weight);
    assert((await text("status")).includes(` · ${amount}`),
      `${mode.facts.mode}, ${key}: ${await text("status")}`);
    checked++;
  }
}

async function checkAbout(mode) {
  const facts = await text("facts"), {facts: f} = mode, whole = model.wholeTree(mode).total;
  assert(facts.includes(` ${f.mode} mode`), facts);
  if (!mode.diff) {
    assert(facts.includes(`${f.samples.toLocaleString("en-US")} ${f.what[f.samples === 1 ? 0 : 1]}`), facts);
    assert(f.unit === "count" || facts.includes(` of ${f.whole}`), facts);
    const kinds = new Set(mode.kindOf), used = mode.kinds.filter(([token]) => kinds.has(token)).map(kind => kind[1]);
    assert.strictEqual(await text("legend"), used.join("") + (mode.boxes.length > 0 ? "▸ folded plumbing" : ""));
  }
  const threads = await evaluate('[...document.getElementById("thread").options].map(o => o.text)');
  const of = mode.threads.map((thread, i) => ({name: model.threadName(thread),
    own: mode.stacks.filter(stack => stack.thread === i).reduce((sum, stack) => sum + stack.weight, 0)}))
    .filter(({own}) => own > 0).map(({name, own}) => `${name} – ${model.percent(own, whole)}`);
  assert.deepStrictEqual(threads.slice(1).sort(), of.sort(), `${mode.facts.mode}: the threads`);
  assert.strictEqual(threads[0], `all (${mode.threads.length})`);
  assert.strictEqual(await evaluate('document.querySelector("#thread optgroup").label'), `shares of ${f.whole}`);
}

// Searches for the first method whose name is unique, and checks its share and which boxes are faded.
async function checkSearch(mode, view) {
  const rows = model.methodsOf(mode), total = model.wholeTree(mode).total;
  if (total === 0 || view === "methods") return;
  const {frame} = rows.sort((a, b) => b.self - a.self)[0], name = mode.names[frame];
  const same = mode.names.flatMap((n, i) => n.includes(name) ? [i] : []);
  const sum = mode.stacks.filter(({path}) => path.some(f => same.includes(f))).reduce((s, {weight}) => s + weight, 0);
  await click(await middle("#search"));
  await keyed(name.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&").replace(/\n/g, "\\s"));
  assert.strictEqual(await text("matches"), `${model.percent(sum, total)} of ${mode.facts.whole} matched, ` +
    `${same.length} frame${same.length === 1 ? "" : "s"}`);
  if (view !== "sandwich") {
    const tree = model.wholeTree(mode);
    const found = await checkChart(mode, "scroller", [tree], {total: tree.total, upward: view === "flame", skip: 0});
    found.forEach(({box, node}) => assert.strictEqual(box.alpha < 0.5, !same.includes(node.frame),
      `${mode.facts.mode}: ${box.text} is ${box.alpha} with a search for ${name}`));
  }
  await press("Escape");
  assert.strictEqual(await text("matches"), "");
}

async function check(mode, view) {
  await checkAbout(mode);
  if (view === "sandwich") await checkSandwich(mode);
  else if (view === "methods") await checkMethods(mode);
  else await checkFlame(mode, view === "flame");
  await checkTimeline(mode);
}

const everything = async () => {
  await point("mouseMoved", {x: 1, y: 1});
  return evaluate(`({
    canvases: [...document.querySelectorAll("canvas")].filter(c => c.clientWidth > 0).map(c => c.drawn),
    words: [...document.querySelectorAll("header, main, footer, #tooltip")].filter(e => !e.hidden).map(e => e.innerText),
    title: document.title, active: document.querySelector("#methods tr[aria-selected] td.name")?.title,
    boxes: [...document.querySelectorAll("select, input")].map(e => [e.id, e.value, e.checked])})`);
};

// The page must show what the same address shows in a newly opened page.
async function checkFresh(url) {
  const is = await everything(), hash = await evaluate("location.hash");
  await open(url + hash);
  const fresh = await everything();
  assert.deepStrictEqual(is, fresh, `${hash}: a page opened anew shows something else`);
}

async function walk(url, modes, fromEach) {
  for (const view of VIEWS) {
    await open(url);
    await click(await middle(`#view-${view}`));
    await check(modes[0], view);
    await checkSearch(modes[0], view);
    // By key, all the way round and one step further, and back; no hover may remain.
    for (let i = 1; i <= modes.length + 1 && modes.length > 1; i++) {
      await press("]");
      assert.strictEqual(await evaluate('document.getElementById("tooltip").hidden'), true, "the tooltip of another mode");
      await check(modes[i % modes.length], view);
      await checkSearch(modes[i % modes.length], view);
      if (fromEach) {
        await checkFresh(url);
        await click(await middle(`#view-${view}`));
      }
    }
    for (let i = modes.length; i >= 0 && modes.length > 1; i--) {
      await press("[");
      await check(modes[i % modes.length], view);
    }
    // By the list, with its keys.
    if (modes.length > 1) {
      await evaluate('document.getElementById("mode").focus()');
      for (const mode of modes.slice(1)) {
        await press("ArrowDown");
        await check(mode, view);
      }
    }
  }
}

// A zoom, a sandwich, a selected row of the table and a search belong to one mode only.
async function carry(url, modes) {
  if (modes.length < 2) return;
  await open(url);
  await press("2");
  const box = rowsOf(await drawn("scroller"), false)[2][0];
  const {x, y} = await middle("#scroller canvas"), top = await evaluate(
    '(({x, y}) => ({x, y}))(document.querySelector("#scroller canvas").getBoundingClientRect())');
  assert(x > 0 && y > 0);
  await point("mouseMoved", {x: top.x + box.x + box.w / 2, y: top.y + box.y + ROW / 2});
  assert.strictEqual(await evaluate('document.getElementById("tooltip").hidden'), false);
  await press("m");
  for (const key of ["ArrowDown", "End"]) await press(key);
  await press("]");
  assert.deepStrictEqual(await evaluate('[document.getElementById("tooltip").hidden, heat.cursor.row, heat.cursor.column]'),
    [true, 0, 0], "the tooltip or the timeline's cursor of another mode");
  await press("[");
  await click({x: top.x + box.x + box.w / 2, y: top.y + box.y + ROW / 2});
  await press("4");
  await press("End");
  await press("]");
  assert(!(await evaluate("location.hash")).includes("node="), "the zoom of another mode is in the link");
  await checkFresh(url);
}

// In the dark theme: everything can be read, also in the search's shade and above a zoom.
async function dark(url, modes) {
  await open(`${url}#theme=dark`);
  await check(modes[0], "icicle");
  await checkSearch(modes[0], "icicle");
  await press("ArrowDown");
  await press("ArrowDown");
  await press("Enter");
  const rows = rowsOf(await drawn("scroller"), false).flat(), page = await evaluate("look.pageColor()");
  assert(rows.length > 0);
  for (const box of rows) assert(contrast(box, box.label, page) >= 4.5, `${box.text} above a zoom: ${JSON.stringify(box)}`);
}

const pairs = process.argv.slice(3);
const tests = [async function hook() { await send("Page.addScriptToEvaluateOnNewDocument", {source: HOOK}); }];
for (let i = 0; i < pairs.length; i += 2) {
  const url = `file://${pairs[i]}`, modes = model.readModel(pairs[i + 1]);
  const name = pairs[i].replace(/.*\//, "");
  tests.push(Object.defineProperty(() => walk(url, modes, true), "name", {value: `modes and views of ${name}`}),
    Object.defineProperty(() => dark(url, modes), "name", {value: `the dark theme of ${name}`}),
    Object.defineProperty(() => carry(url, modes), "name", {value: `what is carried over in ${name}`}));
}
tests.push(async function enough() {
  console.log(`${checked} boxes, rows and cells held against the recording`);
  assert(checked > 500, "that is too few");
  assert(changes.count > 20, `${changes.count} boxes with a change`);
});
run(tests);
