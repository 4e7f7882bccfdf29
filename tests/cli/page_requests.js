// SPDX-License-Identifier: MIT
// Requests by routes and by traces.
"use strict";
const assert = require("assert");
const {send, evaluate, text, settled, open, press, click, middle, choose} = require("./browser.js");
const {page, requestsPage, byRoutePage, byTracePage, hash, column, WORK} = require("./page_parts.js");

// Requests by their routes: all together, each route a box of its own, or one alone.
async function testRoutes() {
  const top = () => evaluate(`Array.from({length: main.tree.count}, (_, i) => i).filter(i => main.tree.depth[i] === 1)
    .map(i => main.tree.recording.names[main.tree.frame[i]] + " " + main.tree.total[i] / 2000).sort()`);
  const options = () => evaluate('[...document.getElementById("route").options].map(o => o.text)');
  await open(`file://${requestsPage}`);
  assert.deepStrictEqual(await options(), ["all together", "each by itself", "GET /cart/{id} – 70.00 %",
    "POST /order – 20.00 %", "no route – 10.00 %"]);
  assert.deepStrictEqual(await top(), ["Shop.Program.Main 1", "▸ thread pool 19"]);
  const cells = await evaluate("heat.cells.reduce((a, b) => a + b)");
  await choose("route", "each");
  assert.deepStrictEqual(await top(), ["GET /cart/{id} 14", "POST /order 4", "Shop.Program.Main 1", "▸ thread pool 1"]);
  // What leads to the delegate is away, which would split what it calls; a stack without it is whole.
  const node = await evaluate('main.tree.widestNamed("GET /cart/{id}")');
  assert.deepStrictEqual(await evaluate(`[...main.tree.children.slice(main.tree.first[${node}], main.tree.first[${node} + 1])]
    .map(i => main.tree.recording.names[main.tree.frame[i]] + " " + main.tree.total[i] / 2000 + "/" + main.tree.self[i] / 2000)`),
  [`${WORK} 14/5`]);
  assert.strictEqual(await evaluate("heat.cells.reduce((a, b) => a + b)"), cells);
  assert.strictEqual(await text("status"), "all threads · 40.00 ms (20 samples) · 100 % of CPU time · self 0.00 %");
  // Searches, sandwiches, links and the table know the boxes of routes.
  await choose("search", "^GET");
  assert.strictEqual(await text("matches"), "70.00 % of CPU time matched, 1 frame");
  await press("4");
  assert.deepStrictEqual(await column("name"), ["GET /cart/{id}"]);
  await click(await middle("#methods tr[data-index] td.self"), 2);
  assert.strictEqual(await text("pick"), "GET /cart/{id}");
  const link = await hash();
  await open(`file://${requestsPage}#${link}`);
  assert.strictEqual(await text("pick"), "GET /cart/{id}");
  assert.strictEqual(await hash(), link);
  await open(`file://${requestsPage}`);
  await choose("route", "2");
  assert.strictEqual(await text("status"), "POST /order · 8.00 ms (4 samples) · 100 % of the selection’s CPU time · self 0.00 %");
  assert.strictEqual(await evaluate('document.querySelector("#route optgroup").label'), "one alone; shares of CPU time");
  assert.match(await text("glance"), /CPU \(whole recording\):/);
  assert.deepStrictEqual(await top(), ["▸ thread pool 4"]);
  assert.strictEqual(await evaluate("Math.round(heat.cells.reduce((a, b) => a + b))"), 2 * 8000);
  assert.strictEqual(await hash(), "route=POST+%2Forder");
  await open(`file://${requestsPage}#${await hash()}`);
  assert.strictEqual(await evaluate("state.tree.total[0]"), 8000);
  await press("0");
  assert.strictEqual(await evaluate("state.tree.total[0]"), 40000);
  await choose("route", "0");
  assert.match(await text("status"), /^no route · 4\.00 ms \(2 samples\)/);
  await open(`file://${byRoutePage}`);
  assert.deepStrictEqual(await top(), ["GET /cart/{id} 14", "POST /order 4", "Shop.Program.Main 1", "▸ thread pool 1"]);
  await choose("route", "all");
  assert.deepStrictEqual(await top(), ["Shop.Program.Main 1", "▸ thread pool 19"]);
  await open(`file://${page}`);
  assert(await evaluate('document.getElementById("route-field").hidden && document.getElementById("traces").hidden'));
}

// An open panel lies within the window, however wide its content is.
async function testPanels() {
  await evaluate(`document.querySelector("#longest td").append("x".repeat(300))`);
  for (const width of [600, 900, 1400]) {
    await send("Emulation.setDeviceMetricsOverride", {width, height: 900, deviceScaleFactor: 1, mobile: false});
    await settled();
    const [left, right, inner, page] = await evaluate(`(() => {
      const {left, right} = $("longest").getBoundingClientRect();
      return [left, right, $("longest").scrollWidth, document.documentElement.scrollWidth];
    })()`);
    assert(left >= 0 && right <= width && page <= width && inner > right - left, `${[left, right, inner, page]} of ${width}`);
  }
  await send("Emulation.clearDeviceMetricsOverride");
  await evaluate(`document.querySelector("#longest td").lastChild.remove()`);
  await settled();
}

// The traces that lasted longest, each of which can be shown alone.
async function testTraces() {
  const rows = () => evaluate(`[...document.querySelectorAll("#longest tr")].slice(1).map(row =>
    [...row.cells].map(cell => cell.textContent))`);
  await open(`file://${byTracePage}`);
  assert.strictEqual(await evaluate("state.recording.names.some(name => name.startsWith('trace '))"), false);
  const all = await rows();
  assert.strictEqual(all.length, 6);
  assert.deepStrictEqual(all.slice(0, 2).map(row => row.slice(0, 4)), [["GET /cart/{id}", "5 ms", "5 ms", "12.00 ms (6)"],
    ["POST /order", "3 ms", "15 ms", "8.00 ms (4)"]]);
  assert.strictEqual(all[0][4], "03" + "0".repeat(30));
  await click(await middle("#traces summary"));
  await testPanels();
  await click(await middle("#longest button"));
  assert.strictEqual(await text("status"), `trace ${all[0][4]} · 12.00 ms (6 samples) · 100 % of the selection’s CPU time · self 0.00 %`);
  assert.strictEqual(await evaluate("Math.round(heat.cells.reduce((a, b) => a + b))"), 2 * 12000);
  assert.strictEqual(await hash(), `trace=${all[0][4]}`);
  await open(`file://${byTracePage}#${await hash()}`);
  assert.strictEqual(await evaluate("state.tree.total[0]"), 12000);
  await click(await middle("#trace"));
  assert.strictEqual(await evaluate("state.tree.total[0]"), 40000);
}

module.exports = {testRoutes, testTraces};
