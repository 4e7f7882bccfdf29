// SPDX-License-Identifier: MIT
// What the window shows of graphs that are high, wide, short or of many boxes, and how hits are found in them.
"use strict";
const assert = require("assert");
const {send, evaluate, text, settled, open, press, click, drag, middle, choose} = require("./browser.js");
const {page, manyPage, diffPage, thinPage, widerPage, place, pick, cell, rewrite} = require("./page_parts.js");

// A flame that is higher than the window stays at its bottom, also after the window has grown.
async function testGrown() {
  const above = () => evaluate("main.host.scrollHeight - main.host.clientHeight - main.host.scrollTop");
  await open(`file://${manyPage}#view=flame&zoom=Shop.Deep.Layer.Method255`);
  for (const height of [500, 700, 640]) {
    await send("Emulation.setDeviceMetricsOverride", {width: 1000, height, deviceScaleFactor: 1, mobile: false});
    await settled();
    assert(await evaluate("main.host.scrollHeight > main.host.clientHeight"), "it is not higher than the window");
    assert(Math.abs(await above()) <= 1, `${await above()} pixels above the bottom at ${height}`);
  }
  await send("Emulation.clearDeviceMetricsOverride");
}

// A compiler's command line is wider than any window; the graph still gets most of the window.
async function testLongProgram() {
  const program = `dotnet csc.dll ${"-r:/usr/share/dotnet/Some.Reference.dll ".repeat(300)}`;
  for (const from of [page, diffPage]) {
    const file = rewrite(from, "long.html", ({modes: [mode]}) => {
      mode.facts.program = program;
      if (mode.diff) mode.diff.facts.program = program;
    });
    for (const [width, height] of [[1400, 900], [800, 600], [480, 800]]) {
      await send("Emulation.setDeviceMetricsOverride", {width, height, deviceScaleFactor: 1, mobile: false});
      await open(`file://${file}`);
      const room = await evaluate("main.host.parentNode.clientHeight");
      assert(room > (width < 700 ? 0.35 : 0.45) * height, `${room} pixels of ${height} are left for the graph`);
      assert.deepStrictEqual(await evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"),
        [width, height]);
      await choose("search", "Shop");
      assert.strictEqual(await evaluate("document.documentElement.scrollWidth"), width, "the search's result has no room");
    }
  }
  await send("Emulation.clearDeviceMetricsOverride");
}

// 100,000 distinct stacks: the window bounds what is drawn, not the recording.
async function testMany() {
  await open(`file://${manyPage}`);
  assert.match(await text("status"), /^all threads · 200\.00 s \(100,000 samples\)/);
  const drawn = await evaluate(`(() => {
    let boxes = 0;
    const {ink} = main, fill = ink.fillRect;
    ink.fillRect = (...a) => { boxes++; fill.apply(ink, a); };
    main.draw();
    ink.fillRect = fill;
    return boxes;
  })()`);
  const nodes = await evaluate("state.tree.count");
  assert(nodes > 1e6, `${nodes} nodes`);
  assert(drawn > 10 && drawn < 20000, `${drawn} boxes drawn`);
  await drag(await cell(20000, 0), await cell(40000, 0));
  const [from, to] = await evaluate("state.range");
  const inRange = await evaluate("state.tree.samples[0]");
  assert(Math.abs(inRange - (to - from)) <= 2, `${inRange} samples in ${to - from} ms`);
  await press("4");
  const rows = await evaluate('document.querySelectorAll("#methods tr").length');
  assert(await evaluate("table.rows.length") > 200 && rows < 100, `${rows} rows in the document`);
}

// A graph is as high as its deepest visible stack, and what it leaves of the window has the table of methods.
async function testShort() {
  const layout = () => evaluate(`(() => {
    const box = id => document.getElementById(id).getBoundingClientRect();
    const last = state.view === "sandwich" ? box("callees") : box("scroller");
    return {chart: last.height, gap: box("methods").height > 0 ? box("methods").top - last.bottom : null,
      below: document.querySelector("footer").getBoundingClientRect().top - box("methods").bottom,
      rows: document.querySelectorAll("#methods tr[data-index]").length};
  })()`);
  const high = (rows, {chart, gap, below}) => assert(Math.abs(chart - rows * 19) < 1 && Math.abs(gap) < 1 &&
    Math.abs(below) < 1, JSON.stringify({rows, chart, gap, below}));
  await open(`file://${page}`);
  const {rows, ...whole} = await layout();
  high(await evaluate("main.tree.height"), whole);
  assert(rows > 3, `${rows} rows below the graph`);
  await pick("System.Linq.Enumerable.Sum");
  const zoomed = await layout();
  high(await evaluate("main.tree.depth[main.focus] + 1"), zoomed);
  assert(zoomed.chart < whole.chart);
  await press("Escape");
  assert.deepStrictEqual(await layout(), {rows, ...whole});
  await press("1");
  high(await evaluate("main.tree.height"), await layout());
  await pick("System.Linq.Enumerable.Sum");
  assert.match(await text("status"), /^System\.Linq\.Enumerable\.Sum · /);
  // The table shows what the search finds, and opens sandwiches; a double click is for the box that its first click was for.
  await choose("search", "Sum");
  assert.strictEqual((await layout()).rows, 1);
  await click(await middle("#methods tr[data-index] td.self"), 2);
  assert.strictEqual(await text("pick"), "System.Linq.Enumerable.Sum");
  high(await evaluate("callees.tree.height - 1"), await layout());
  await press("0");
  await press("1");
  await click(await place("Shop.Program.Main"), 2);
  assert.strictEqual(await text("pick"), "Shop.Program.Main");
  await open(`file://${manyPage}#zoom=Shop.Deep.Layer.Method255`);
  assert.strictEqual((await layout()).gap, null);
  await send("Emulation.setDeviceMetricsOverride", {width: 1000, height: 320, deviceScaleFactor: 1, mobile: false});
  await open(`file://${page}`);
  assert.strictEqual((await layout()).gap, null);
  await send("Emulation.clearDeviceMetricsOverride");
}

// A tower of 150 rows that is narrower than a pixel is not seen before a zoom to it, and makes no graph high; one of some
// pixels may be scrolled to.
async function testTowers() {
  const view = () => evaluate(`({rows: main.rows(), chart: main.host.clientHeight, high: main.host.scrollHeight,
    table: document.getElementById("methods").getBoundingClientRect().height})`);
  for (const [file, thin] of [[thinPage, true], [widerPage, false]]) {
    await open(`file://${file}`);
    const {rows, chart, high, table} = await view();
    assert(table >= 120 && chart < 200, JSON.stringify({file, rows, chart, high, table}));
    assert(thin ? rows < 10 && high === chart : rows > 150 && high > 150 * 19, JSON.stringify({file, rows, chart, high}));
    const last = await evaluate("state.tree.widestNamed('N.T.Level149')");
    assert(last > 0);
    await evaluate(`main.select(${last})`);
    await settled();
    assert.match(await text("status"), /^N\.T\.Level149 /);
    assert((await view()).rows > 150);
    const y = await evaluate(`main.rowTop(main.tree.depth[${last}])`);
    assert(y >= 0 && y < await evaluate("main.host.clientHeight"), `the box is at ${y}`);
    await press("Escape");
    assert.strictEqual((await view()).rows, rows);
  }
}

// The hits of a search have a count and an order, the widest first; narrow ones are zoomed to, and those too narrow to be
// drawn have marks.
async function testHits() {
  await open(`file://${page}`);
  const hits = () => evaluate('document.getElementById("hits").hidden ? "" : document.getElementById("hit-next").textContent');
  assert.strictEqual(await hits(), "");
  await choose("search", "Sum$");
  assert.strictEqual(await hits(), "2 ›");
  await click(await middle("#hit-next"));
  assert.strictEqual(await hits(), "1 of 2 ›");
  assert.match(await text("status"), /^System\.Linq\.Enumerable\.Sum · 8\.00 ms/);
  await evaluate("main.host.focus()");
  await press(".");
  assert.match(await text("status"), /^System\.Linq\.Enumerable\.Sum · 2\.00 ms/);
  await press(".");
  assert.strictEqual(await hits(), "1 of 2 ›");
  await press(",");
  assert.strictEqual(await hits(), "2 of 2 ›");
  await choose("search", "nothing at all");
  assert.strictEqual(await hits(), "");
  // The last of 100,000 stacks are far narrower than a pixel.
  await open(`file://${manyPage}`);
  const marks = () => evaluate(`(() => {
    let marks = 0;
    const {ink} = main, fill = ink.fillRect, color = (ink.fillStyle = look.foundColor(), ink.fillStyle);
    ink.fillRect = (...a) => { marks += ink.fillStyle === color && a[2] >= 2; fill.apply(ink, a); };
    main.draw();
    ink.fillRect = fill;
    return marks;
  })()`);
  assert.strictEqual(await marks(), 0);
  await choose("search", "Method255$");
  assert(await marks() > 20, `${await marks()} marks`);
  await press(".");
  await press(".");
  assert.match(await text("status"), /^Shop\.Deep\.Layer\.Method255 · /);
  const width = await evaluate("main.tree.total[main.selected] / (main.to - main.from) * main.width");
  assert(width >= 26, `the hit is ${width} pixels wide`);
}

module.exports = {testGrown, testLongProgram, testMany, testShort, testTowers, testHits};
