// SPDX-License-Identifier: MIT
// Comparisons of two recordings.
"use strict";
const assert = require("assert");
const {evaluate, text, open, press, click, middle, choose} = require("./browser.js");
const {diffPage, modesPage, idlePage, ratePage, place, hover, pick, hash, column} = require("./page_parts.js");

// A share that went from 45 % to 55 % is red. What is gone is blue, where frames are as wide as they were.
async function testDiff() {
  await open(`file://${diffPage}#theme=light`);
  const facts = await text("facts");
  assert(facts.includes("compared in cpu mode at 499 Hz") && facts.includes("share of its recording"), facts);
  const sides = await evaluate('[...document.querySelectorAll("#compared li")].map(li => li.textContent)');
  assert.match(sides[0], /^before 11 samples, 22\.00 ms of CPU time in [0-9.]+ s · .*fake_agent golden$/);
  assert.match(sides[1], /^after 22 samples, 44\.00 ms of CPU time in [0-9.]+ s · .*fake_agent later$/);
  assert.strictEqual(sides.length, 3);
  assert.match(sides[2], /^9 % of the stacks before and 0 % of those after lack callers beyond the depth limit/);
  assert.match(await text("program"), /fake_agent golden → .*fake_agent later$/);
  assert.strictEqual(await evaluate("heat.host.hidden"), true);
  const SUM = "System.Linq.Enumerable.Sum";
  const color = async name => {
    const {x, y} = await place(name);
    return evaluate(`(() => {
      const box = main.canvas.getBoundingClientRect(), {tree} = main;
      const node = tree.widestNamed(${JSON.stringify(name)});
      const right = main.toPixel(tree.leftOf(node) + tree.total[node]) - 6;
      return [...main.ink.getImageData(right, ${y} - box.top, 1, 1).data];
    })()`);
  };
  const [red, , blue] = await color(SUM);
  assert(red > blue + 60, `it grew and is not red: ${red}, ${blue}`);
  await pick(SUM);
  assert.match(await text("status"), /^System\.Linq\.Enumerable\.Sum · 24\.00 ms · 54\.55 % of CPU time .* · \+18\.18 % against before$/);
  await hover(SUM);
  assert((await text("tooltip")).includes("before16.00 ms36.36 %"), await text("tooltip"));
  await press("Escape");
  await choose("width", "before");
  const late = await color("Shop.Late.Comer");
  assert(late[2] > late[0] + 60, `it shrank and is not blue: ${late}`);
  assert.match(await hash(), /width=before/);
  await press("4");
  assert.deepStrictEqual((await column("name")).slice(0, 2), ["Shop.Program.Main", SUM]);
  assert.deepStrictEqual((await column("selfDelta")).slice(0, 3), ["+45.45 %", "+9.09 %", "0.00 %"]);
  await click(await middle("th.selfDelta button"));
  assert.strictEqual((await column("selfDelta"))[0], "−9.09 %");
}

// The change that is shown of a row or a box is the difference of the two shares that are shown beside it.
async function testChanges() {
  const points = shown => shown.startsWith("<") ? 0.005 : Number(/^([+−]?[0-9.]+) %/.exec(shown)[1].replace("−", "-"));
  const agree = (change, before, after, of) =>
    assert(Math.abs(points(change) - (points(after) - points(before))) < 0.0151, `${of}: ${before}, ${after}, ${change}`);
  let rows = 0, changed = 0;
  for (const file of [diffPage, idlePage, ratePage, modesPage]) for (const link of ["", "#idle=on", "#width=before", "#mode=alloc"]) {
    await open(`file://${file}${link}`);
    const [root, boxes] = await evaluate(`(() => {
      const cell = (row, i) => row.cells[i].textContent, shares = [];
      for (let i = 1; i < main.tree.count; i++) {
        tooltip(main, i, {clientX: 0, clientY: 0});
        const lines = [...$("tooltip").querySelectorAll("tr")], of = name => cell(lines.find(row => cell(row, 0) === name), 2);
        shares.push([of("change"), of("before"), of("after"), frameName(main.tree, i)]);
      }
      tooltip(null, -1, null);
      return [main.tree.whole > 0 && main.tree.before && [$("status").textContent, state.recording.diff.normalize], shares];
    })()`);
    boxes.forEach(box => agree(...box));
    if (root[1] === "total") assert.match(root[0], / · 100 % of .* · 0\.00 % against before$/);
    await press("4");
    for (const id of ["self", "total"]) {
      const [change, before, after, names] = [await column(`${id}Delta`), await column(`${id}Before`), await column(id), await column("name")];
      change.forEach((text, i) => agree(text, before[i], after[i], `${link} ${names[i]}, ${id}`));
      rows += change.length;
      changed += change.filter(text => points(text) !== 0).length;
    }
  }
  assert(rows > 100 && changed > 50, `${changed} of ${rows}`);
}

// A comparison of several modes, the last of which only one of the recordings has.
async function testDiffModes() {
  await open(`file://${modesPage}`);
  const options = await evaluate('[...document.getElementById("mode").options].map(o => o.text)');
  assert.deepStrictEqual(options, ["cpu", "alloc", "wall (only after)"]);
  assert.match(await text("status"), /^all threads · 44\.00 ms · 100 %/);
  await choose("width", "before");
  await choose("search", "Sum$");
  assert.strictEqual(await text("matches"), "45.45 % of CPU time matched, 1 frame");
  await choose("mode", "1");
  // 30 of 40 objects are new, and Sum's; its share was zero before.
  assert.strictEqual(await text("matches"), "0.00 % of allocated bytes matched, 1 frame");
  await choose("width", "after");
  assert.strictEqual(await text("matches"), "75.00 % of allocated bytes matched, 1 frame");
  assert.match(await text("status"), /^all threads · 4\.10 MB · 100 %/);
  assert((await text("compared")).includes("40 sampled objects, 4.10 MB of allocated bytes in"), await text("compared"));
  assert((await text("legend")).includes("shrank a little"), await text("legend"));
  await press("4");
  await choose("search", "");
  assert.deepStrictEqual((await column("selfDelta")), ["+75.00 %", "0.00 %", "−75.00 %"]);
  assert.match(await hash(), /^view=methods&mode=alloc$/);
  await open(`file://${modesPage}#${await hash()}&width=before`);
  assert.deepStrictEqual((await column("name")).slice(0, 1), ["System.Linq.Enumerable.Sum"]);
  // By the keyboard, all the way round.
  for (const [key, mode] of [["[", "0"], ["[", "2"], ["]", "0"], ["]", "1"]]) {
    await press(key);
    assert.strictEqual(await evaluate('document.getElementById("mode").value'), mode);
  }
  assert.deepStrictEqual(await column("selfDelta"), ["+75.00 %", "0.00 %", "−75.00 %"]);
  // What cannot be compared has the colours and the columns of a recording.
  await choose("mode", "2");
  assert.deepStrictEqual(await column("selfDelta"), []);
  assert((await text("facts")).includes("only the recording after has this mode"), await text("facts"));
  assert.strictEqual(await evaluate('document.getElementById("width-field").hidden'), true);
  assert.strictEqual(await text("legend"), "");
  assert.match(await text("empty"), /^Nothing was sampled/);
  assert.match(await hash(), /mode=wall/);
}

module.exports = {testDiff, testChanges, testDiffModes};
