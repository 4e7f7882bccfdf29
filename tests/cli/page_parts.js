// SPDX-License-Identifier: MIT
// The pages that page.js is given, and what its tests do with them beyond browser.js.
"use strict";
const fs = require("fs"), zlib = require("zlib");
const {evaluate, point, click} = require("./browser.js");
const [page, manyPage, diffPage, modesPage, servedPage, requestsPage, byRoutePage, byTracePage, idlePage, ratePage,
  thinPage, widerPage] =
  process.argv.slice(3);

// Where the widest node of that name is drawn.
const place = (name, chart = "main") => evaluate(`(() => {
  const node = ${chart}.tree.widestNamed(${JSON.stringify(name)}), {tree} = ${chart};
  const box = ${chart}.canvas.getBoundingClientRect();
  const x = ${chart}.toPixel(tree.leftOf(node) + tree.total[node] / 2);
  return {x: box.left + x, y: box.top + ${chart}.rowTop(tree.depth[node]) + ROW / 2};
})()`);
const hover = async name => point("mouseMoved", await place(name));
const pick = async (name, chart) => click(await place(name, chart));
const zoomed = (chart = "main") => evaluate(`[${chart}.from, ${chart}.to]`);
const hash = () => evaluate("location.hash.slice(1)");
const focused = () => evaluate("document.activeElement.id");

const WORK = "Shop.Cart<System.Int32>.Work", EVIL = 'Odd</script>;"\\\n.M.lambda#0';

const column = id => evaluate(
  `[...document.querySelectorAll("#methods td.${id}")].map(cell => cell.textContent)`);

// The heatmap: one sample every millisecond, 11 of them, with thread 100 in the second row.
const cell = (ms, row) => evaluate(`(() => {
  const box = heat.canvas.getBoundingClientRect();
  return {x: box.left + heat.toPixel(${ms}), y: box.top + heat.rowTop(${row}) + HEAT_ROW / 2};
})()`);

// A page with data that the command did not write: a new file.
function rewrite(from, name, change) {
  const html = fs.readFileSync(from, "utf8"), form = /(<script id="data"[^>]*>\s*)([^<\s]+)/;
  const raw = zlib.inflateSync(Buffer.from(form.exec(html)[2], "base64"));
  const place = raw.subarray(-10), columns = raw.subarray(0, Number(place));
  const data = JSON.parse(raw.subarray(columns.length, -10).toString());
  change(data);
  const file = from.replace(/[^/]*$/, name);
  const packed = zlib.deflateSync(Buffer.concat([columns, Buffer.from(JSON.stringify(data)), place]))
    .toString("base64");
  fs.writeFileSync(file, html.replace(form, (all, tag) => tag + packed));
  return file;
}

module.exports = {page, manyPage, diffPage, modesPage, servedPage, requestsPage, byRoutePage, byTracePage, idlePage,
  ratePage, thinPage, widerPage, place, hover, pick, zoomed, hash, focused, column, cell, rewrite, WORK, EVIL};
