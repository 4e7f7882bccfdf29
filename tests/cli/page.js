// SPDX-License-Identifier: MIT
// Drives the flame graph page in a headless Chromium as a person would, with mouse and keys, and checks what the page
// shows. Usage: node page.js CHROMIUM PAGE.html MANY.html DIFF.html MODES.html SERVED.html
// REQUESTS.html BY-ROUTE.html BY-TRACE.html IDLE-DIFF.html RATE-DIFF.html. Exit code 0 or 1.
"use strict";
const assert = require("assert"), fs = require("fs"), zlib = require("zlib");
const {send, evaluate, text, settled, open, press, point, click, drag, middle, choose, run} =
  require("./browser.js");
const {testColors, testContrast} = require("./page_colors.js");
const [page, manyPage, diffPage, modesPage, servedPage, requestsPage, byRoutePage, byTracePage, idlePage, ratePage] =
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

async function testFacts() {
  const facts = await text("facts"), cost = await text("cost");
  for (const part of ["11 samples", "22.00 ms of CPU time", "cpu mode at 499 Hz", ".NET 10.0.12"]) {
    assert(facts.includes(part), `facts: ${part} is not in ${facts}`);
  }
  for (const part of ["0 lost", "81.81 % of the stacks complete", "threads held 3.0 / 8.0 / 8.0 µs", "runtime stopped 0 times"]) {
    assert(cost.includes(part), `the panel: ${part} is not in ${cost}`);
  }
  assert.match(await text("program"), /fake_agent golden/);
  assert.match(await evaluate("document.title"), /fake_agent golden/);
  assert.strictEqual(await text("status"), "all threads · 22.00 ms (11 samples) · 100 % of CPU time · self 0.00 %");
}

async function testZoom() {
  await pick(WORK);
  assert.match(await text("status"), /^Shop\.Cart<System\.Int32>\.Work · 10\.00 ms \(5 samples\) · 45\.45 % of CPU time/);
  assert.deepStrictEqual(await zoomed(), [0, 10000]);
  await pick("[libcoreclr.so]");
  assert.deepStrictEqual(await zoomed(), [8000, 10000]);
  await press("Backspace");
  assert.deepStrictEqual(await zoomed(), [0, 10000]);
  await press("Escape");
  assert.deepStrictEqual(await zoomed(), [0, 22000]);
}

async function testTooltip() {
  await hover(EVIL);
  const tip = await text("tooltip");
  assert(tip.startsWith(EVIL), `tooltip: ${tip}`);
  assert(tip.includes("app.dll · your code"), `tooltip: ${tip}`);
  assert(tip.includes("2.00 ms (1 sample)9.09 % of CPU time") && tip.includes("of its caller11.11 %"), `tooltip: ${tip}`);
}

async function testSearch() {
  await press("/");
  assert.strictEqual(await evaluate("document.activeElement.id"), "search");
  const unseen = () => evaluate('document.getElementById("unseen").innerText');
  assert.strictEqual(await evaluate('document.getElementById("unseen").hidden'), true);
  await choose("search", "linq.*sum$");
  assert.match(await unseen(), /not seen where it was inlined.* --inlined/);
  assert.strictEqual(await text("matches"), "45.45 % of CPU time matched, 1 frame");
  await choose("search", "Work");  // recursion counts once
  assert.strictEqual(await text("matches"), "54.55 % of CPU time matched, 1 frame");
  await choose("search", "(");
  assert.strictEqual(await text("matches"), "not a regular expression");
  await choose("search", "cut:");
  assert.strictEqual(await text("matches"), "18.18 % of CPU time matched, 2 frames");
  await press("Escape");
  assert.strictEqual(await text("matches"), "");
  assert.strictEqual(await evaluate('document.getElementById("unseen").hidden'), true);
}

async function testThreads() {
  const options = await evaluate('[...document.getElementById("thread").options].map(o => o.text)');
  assert.deepStrictEqual(options, ["all (2)", "Main (100) – 63.64 %", "thread 101 – 36.36 %"]);
  await choose("thread", "1");
  assert.strictEqual(await text("status"), "thread 101 · 8.00 ms (4 samples) · 100 % of the selection’s CPU time · self 0.00 %");
  await choose("unit", "samples");
  assert.strictEqual(await text("status"), "thread 101 · 4 samples · 100 % of the selection’s samples · self 0.00 %");
  assert.strictEqual(await evaluate('document.querySelector("#thread optgroup").label'), "shares of samples");
  await choose("unit", "weight");
  await choose("thread", "all");
}

async function testNative() {
  assert(await evaluate('main.tree.widestNamed("[libcoreclr.so]") > 0'));
  await press("n");
  assert.strictEqual(await evaluate('main.tree.widestNamed("[libcoreclr.so]")'), 0);
  assert.strictEqual(await text("status"), "all threads · 22.00 ms (11 samples) · 100 % of CPU time · self 0.00 %");
  // The cost of the native leaves is now their callers' own.
  await hover("Shop.Program.Main");
  assert.match(await text("status"), /^Shop\.Program\.Main · 18\.00 ms \(9 samples\) · 81\.82 % of CPU time · self 9\.09 %/);
  await press("n");
}

async function testShortNames() {
  const shortest = async name => {
    const forms = await evaluate(`shortNames(${JSON.stringify(name)})`);
    assert.strictEqual(forms[0], name);
    return forms[forms.length - 1];
  };
  assert.strictEqual(await shortest("System.Linq.Enumerable.Sum<System.Int32>"), "Sum<Int32>");
  assert.strictEqual(await shortest("A.B.Map<C.Key,D.Value>.Slot.Find"), "Find");
  assert.strictEqual(await shortest("A.B.Parser..cctor"), "Parser..cctor");
  assert.strictEqual(await shortest("A.Shop.<SellAsync>d__8.MoveNext"), "SellAsync");
  assert.strictEqual(await shortest("A.Box<T>.MoveNext"), "Box<T>.MoveNext");
  assert.strictEqual(await shortest("[libcoreclr.so]"), "[coreclr]");
  assert.strictEqual(await shortest("[libicuuc.so.72.1]"), "[icuuc]");
  assert.strictEqual(await shortest("main"), "main");
  assert.strictEqual(await shortest("A.B.Cart.Sum<A.Item> (Cart.Sums.cs:12)"), "Sum<Item> (Cart.Sums.cs:12)");
  assert.strictEqual(await shortest("A.Cart.Sum (Cart.cs:12) (inlined)"), "Sum (Cart.cs:12) (inlined)");
  assert.strictEqual(await shortest("plan_phase.part.0"), "plan_phase");
  assert.strictEqual(await shortest("free_list.constprop.0.isra.3.cold"), "free_list");
  assert.strictEqual(await shortest("Shop.Store.RunAsync<int>.lambda#0"), "RunAsync<int>.lambda#0");
  assert.strictEqual(await shortest("Shop.Store.RunAsync.lambda#12 [awaits]"), "RunAsync.lambda#12 [awaits]");
  assert.strictEqual(await shortest("System.Memory<byte>.Span.get"), "Span.get");
  assert.strictEqual(await shortest("A.Store.getAll"), "getAll");
  assert.strictEqual(await shortest("new A.Shop.Store<A.Item>"), "new Store<Item>");
  assert.strictEqual(await shortest("static A.Shop.Store"), "static Store");
}

async function testKeys() {
  await evaluate("main.host.focus()");
  await press("ArrowDown");
  await press("ArrowDown");
  assert.match(await text("status"), /^Shop\.Program\.Main · 18\.00 ms \(9 samples\)/);
  await press("ArrowRight");
  assert.match(await text("status"), /^\[cut: /);
  await press("ArrowLeft");
  await press("ArrowDown");
  await press("Enter");
  assert.deepStrictEqual(await zoomed(), [0, 10000]);
  await press("f");
  assert.strictEqual(await evaluate("state.view"), "flame");
  await press("ArrowUp");
  assert.match(await text("status"), /^System\.Linq\.Enumerable\.Sum · 8\.00 ms \(4 samples\)/);
  const dark = await evaluate("look.dark");
  await press("t");
  assert.strictEqual(await evaluate("look.dark"), !dark);
  await press("?");
  assert.strictEqual(await evaluate('document.getElementById("keys").open'), true);
  await press("Escape");
  assert.strictEqual(await evaluate('document.getElementById("keys").open'), false);
}

async function testLink() {
  await open(`file://${page}#thread=101&view=flame&theme=dark&search=Sum&zoom=${encodeURIComponent(WORK)}`);
  assert.strictEqual(await text("matches"), "50.00 % of the selection’s CPU time matched, 1 frame");
  assert.match(await text("status"), /^Shop\.Cart<System\.Int32>\.Work · /);
  assert(await evaluate('state.view === "flame" && look.dark && document.documentElement.classList.contains("dark")'));
}

// The heatmap: one sample every millisecond, 11 of them, with thread 100 in the second row.
const cell = (ms, row) => evaluate(`(() => {
  const box = heat.canvas.getBoundingClientRect();
  return {x: box.left + heat.toPixel(${ms}), y: box.top + heat.rowTop(${row}) + HEAT_ROW / 2};
})()`);

async function testTimeline() {
  await open(`file://${page}`);
  await drag(await cell(0.5, 0), await cell(4.5, 0));
  assert.match(await text("status"), /^all threads · 8\.00 ms \(4 samples\) · 100 %/);
  assert.match(await text("range"), /^\d+ ms – \d+ ms/);
  assert.match(await hash(), /^from=[\d.]+&to=[\d.]+$/);
  await drag(await cell(0.5, 2), await cell(9.5, 2));
  assert.match(await text("status"), /^thread 101 · 4\.00 ms \(2 samples\)/);
  assert.match(await hash(), /^thread=101&/);
  const link = await hash();
  await open(`file://${page}#${link}`);
  assert.match(await text("status"), /^thread 101 · 4\.00 ms \(2 samples\)/);
  await click(await middle("#range"));
  assert.match(await text("status"), /^thread 101 · 8\.00 ms \(4 samples\)/);
  await press("0");
  assert.match(await text("status"), /^all threads · 22\.00 ms \(11 samples\)/);
  await click(await evaluate(`(() => {
    const box = heat.canvas.getBoundingClientRect();
    return {x: box.left + 30, y: box.top + heat.rowTop(1) + 5};
  })()`));
  assert.match(await text("status"), /^Main \(100\) · 14\.00 ms \(7 samples\)/);
  await press("0");
  // With a search, only matching samples are counted.
  assert.strictEqual(await evaluate("Math.round(heat.cells.reduce((a, b) => a + b))"), 44000);
  await choose("search", "Sum");
  assert.strictEqual(await evaluate("Math.round(heat.cells.reduce((a, b) => a + b))"), 20000);
  await press("0");
}

async function testTimelineKeys() {
  await press("m");
  assert.strictEqual(await focused(), "heat");
  for (const key of ["ArrowUp", "ArrowUp", "Home"]) await press(key);
  assert.match(await text("status"), /^all threads · 0 ms · 0\.0\d ms · 1 processor$/);
  await press("End", true);
  assert.match(await text("status"), /^all threads · /);
  assert.strictEqual(await evaluate("state.tree.total[0]"), 22000);
  await press("Home");
  await press("ArrowDown");
  await press("End", true);
  assert.strictEqual(await evaluate("state.tree.total[0]"), 14000);
  await press("Escape");
  assert.strictEqual(await evaluate("state.tree.total[0]"), 22000);
  await press("h");
  assert.strictEqual(await evaluate("heat.host.hidden"), true);
  assert.strictEqual(await hash(), "heat=off");
  await press("h");
}

async function testSandwich() {
  await click(await place(WORK), 2);
  assert.strictEqual(await evaluate("state.view"), "sandwich");
  assert.strictEqual(await text("pick"), WORK);
  assert.strictEqual(await evaluate('document.getElementById("unseen").hidden'), false);
  // A method that is on a stack twice counts once.
  assert.strictEqual(await text("pick-share"), "12.00 ms (6 samples) · 54.55 % of CPU time");
  const shares = chart => evaluate(`(() => {
    const {tree} = ${chart}, rows = {};
    for (let i = 1; i < tree.count; i++) {
      if (tree.depth[i] === 2) rows[tree.recording.names[tree.frame[i]]] = tree.total[i];
    }
    return rows;
  })()`);
  assert.deepStrictEqual(await shares("callers"), {"Shop.Program.Main": 10000, "[cut: depth]": 2000});
  assert.deepStrictEqual(await shares("callees"), {"System.Linq.Enumerable.Sum": 8000, [WORK]: 4000});
  await pick("System.Linq.Enumerable.Sum", "callees");
  assert.deepStrictEqual(await zoomed("callees"), [0, 8000]);
  await press("s");
  assert.strictEqual(await text("pick"), "System.Linq.Enumerable.Sum");
  assert.match(await hash(), /^view=sandwich&method=System\.Linq\.Enumerable\.Sum$/);
  await open(`file://${page}#${await hash()}`);
  assert.strictEqual(await text("pick"), "System.Linq.Enumerable.Sum");
}

const column = id => evaluate(
  `[...document.querySelectorAll("#methods td.${id}")].map(cell => cell.textContent)`);

async function testMethods() {
  await open(`file://${page}`);
  await press("4");
  assert.strictEqual(await focused(), "methods");
  assert.deepStrictEqual((await column("name")).slice(0, 2), ["System.Linq.Enumerable.Sum", WORK]);
  assert.deepStrictEqual((await column("self")).slice(0, 2), ["45.45 %", "9.09 %"]);
  assert.deepStrictEqual((await column("samples")).slice(0, 2), ["5", "1"]);
  assert.strictEqual(await evaluate('document.querySelector("#methods td.self").style.getPropertyValue("--share")'), "45.45%");
  assert.strictEqual(await evaluate('document.querySelector("#methods td.name i").title'), "framework");
  await click(await middle("th.samples button"));
  assert.deepStrictEqual((await column("samples")).map(Number), (await column("samples")).map(Number).sort((a, b) => b - a));
  await click(await middle("th.total button"));
  assert.deepStrictEqual((await column("name")).slice(0, 2), ["Shop.Program.Main", WORK]);
  assert.deepStrictEqual((await column("total")).slice(0, 2), ["81.82 %", "54.55 %"]);
  const sorted = () => evaluate('document.querySelector("th.total").getAttribute("aria-sort")');
  assert.strictEqual(await sorted(), "descending");
  await press("Enter");
  assert.strictEqual(await sorted(), "ascending");
  assert.strictEqual(await hash(), "view=methods&sort=total");
  await choose("search", "^Shop");
  assert.deepStrictEqual((await column("name")).sort(), [WORK, "Shop.Late.Comer", "Shop.Program.Main"]);
  await evaluate('document.getElementById("search").value = ""; searchChanged()');
  await evaluate("table.host.focus()");
  await press("Home");
  await press("End");
  assert.match(await text("status"), /^Shop\.Program\.Main · self 0\.00 ms \(0 samples\) · total 18\.00 ms \(9 samples\)/);
  await press("Enter");
  assert.strictEqual(await text("pick"), "Shop.Program.Main");
  assert.strictEqual(await focused(), "callees");
}

// Tab reaches every control, and each control shows that it has the focus.
async function testFocus() {
  await open(`file://${page}`);
  const reached = new Set();
  for (let i = 0; i < 25; i++) {
    await press("Tab");
    const [id, outline] = await evaluate(`(() => {
      const at = document.activeElement;
      return [at.id || at.tagName.toLowerCase(), getComputedStyle(at).outlineStyle];
    })()`);
    if (id === "body") continue;
    assert.strictEqual(outline, "solid", `${id} has the focus and does not show it`);
    reached.add(id);
  }
  for (const id of ["view-flame", "view-icicle", "view-sandwich", "view-methods", "thread", "unit",
    "summary", "search", "heat-toggle", "theme", "help", "heat", "scroller"]) {
    assert(reached.has(id), `Tab does not reach ${id}: ${[...reached]}`);
  }
}

async function testFolds() {
  await open(`file://${page}`);
  await evaluate('document.querySelector("#frames summary").click()');
  await click(await middle("#folds input[data-kind=framework]"));
  assert.strictEqual(await evaluate('main.tree.widestNamed("System.Linq.Enumerable.Sum")'), 0);
  assert.strictEqual(await hash(), "hide=framework");
  const plumbing = names => evaluate(`${JSON.stringify(names)}.map(isPlumbing)`);
  assert.deepStrictEqual(await plumbing(["System.Threading.ThreadPoolWorkQueue.Dispatch",
    "System.Threading.ExecutionContext.RunInternal", "__clone3", "App.Threading.ExecutionContext.Run",
    "System.Linq.Enumerable.Sum", "Microsoft.FSharp.Control.Trampoline.Execute",
    "<StartupCode$FSharp-Core>.$Async.clo@193-1", "Microsoft.FSharp.Collections.SeqModule.Iterate<T>",
    "static System.Threading.ThreadPool.lambda#0"]), [true, true, true, false, false, true, true, false, true]);
}

// A share that went from 45 % to 55 % is red. What is gone is blue, where frames are as wide as they were.
async function testDiff() {
  await open(`file://${diffPage}#theme=light`);
  const facts = await text("facts");
  assert(facts.includes("compared in cpu mode at 499 Hz") && facts.includes("share of its recording"), facts);
  const sides = await evaluate('[...document.querySelectorAll("#compared li")].map(li => li.textContent)');
  assert.match(sides[0], /^before 11 samples, 22\.00 ms of CPU time in [0-9.]+ s · .*fake_agent golden$/);
  assert.match(sides[1], /^after 22 samples, 44\.00 ms of CPU time in [0-9.]+ s · .*fake_agent later$/);
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

// With --inlined, a search says where its methods were inlined, with shares; hidden frames change
// nothing. Linq's Sum is made an inlined method of Work's, with a line, and of two that have no samples.
async function testInlined() {
  const unseen = () => evaluate('document.getElementById("unseen").innerText');
  const sum = "System.Linq.Enumerable.Sum";
  const file = rewrite(page, "inlined.html", ({modes: [mode]}) => {
    const at = mode.strings.indexOf(sum), count = mode.strings.length;
    assert(at >= 0, "there is no Sum");
    mode.facts.inlined = true;
    mode.strings[at] = `${sum} (Sum.cs:12) (inlined)`;
    mode.strings.push(sum, "Shop.Total", "Shop.Other");
    mode.inlining = [count, count + 1, count, count + 2, count + 1, count + 2];
  });
  await open(`file://${file}`);
  await choose("search", "linq.*sum$");
  const inlined = await unseen();
  assert.match(inlined, /^System\.Linq\.Enumerable\.Sum was inlined into Shop\.Cart<System\.Int32>\.Work \(36\.36 %\), \[unknown code\] \(9\.09 %\), /);
  assert.match(inlined, /Shop\.Total \(no samples of it\) and Shop\.Other \(no samples of it\)\. Not seen: .*precompiled/);
  await evaluate('fold("user", true)');
  assert.strictEqual(await unseen(), inlined);
  await evaluate('fold("user", false)');
  await choose("search", "^Shop.Total$");
  assert.match(await unseen(), /^Shop\.Total was inlined into Shop\.Other \(no samples of it\)\. Not seen/);
  await choose("search", "Work");
  assert.match(await unseen(), /^Not seen: /);
  const compared = rewrite(diffPage, "inlined.html", ({modes: [mode]}) => { mode.facts.inlined = true; });
  await open(`file://${compared}`);
  await choose("search", "Sum");
  assert.match(await unseen(), /^A method is not seen where it was inlined/);
}

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

// A page of two modes with marks: the golden recording's data, and the same data again as bytes.
async function testModes() {
  const file = rewrite(page, "with-alloc.html", data => {
    const alloc = structuredClone(data.modes[0]);  // of the same columns
    alloc.facts = {...alloc.facts, mode: "alloc", unit: "bytes"};
    data.modes.push(alloc);
    data.marks = [[5000, 1000, "a collection"]];
  });
  await open(`file://${file}`);
  assert.match(await text("status"), /^all threads · 22\.00 ms/);
  // The timeline says how many processors a cell's time is, has a band for the pause, and two tones where threads sleep.
  const rects = color => evaluate(`(() => {
    const {ink} = heat, fill = ink.fillRect, seen = [];
    ink.fillStyle = ${color};
    const color = ink.fillStyle;
    ink.fillRect = (...a) => { if (ink.fillStyle === color) seen.push(a[3]); fill.apply(ink, a); };
    heat.draw();
    ink.fillRect = fill;
    return seen;
  })()`);
  const [columns, ms, first, weight] = await evaluate(`(() => {
    const first = heat.cells.findIndex(cell => cell > 0);
    return [heat.columns, heat.recording.durationMs, first, heat.cells[first]];
  })()`);
  await point("mouseMoved", await cell((first + 0.5) * ms / columns, 0));
  const many = (weight / 1000 / (ms / columns)).toLocaleString("en-US", {maximumFractionDigits: 1});
  assert((await text("status")).includes(` · ${many} processor`) && weight > 0, await text("status"));
  // However narrow the columns are, a thread that always runs is one processor: a sample's time is before it.
  const busy = await evaluate(`(() => {
    const {recording: rec} = heat, kept = rec.sampleWeight;
    rec.sampleWeight = Float64Array.from(kept, () => 1000);
    heat.count();
    const most = heat.processors(heat.mostOfAll), {cells} = heat, sum = cells.reduce((a, b) => a + b);
    rec.sampleWeight = kept;
    heat.count();
    return [most, Math.round(sum)];
  })()`);
  assert.deepStrictEqual(busy, ["1 processor", 2 * 11000]);
  assert((await rects("look.markColor()")).some(height => height > 40), "there is no band for the collection");
  assert.strictEqual((await rects("look.waiting(1)")).length, 0);
  await evaluate("heat.recording.asleep = new Uint8Array(11).fill(1, 0, 5); heat.count()");
  assert((await rects("look.waiting(1)")).length >= 5);
  await evaluate("heat.recording.asleep = null; heat.count()");
  await choose("mode", "1");
  assert.match(await text("status"), /^all threads · 22\.00 kB/);
  assert.match(await hash(), /^mode=alloc/);
  await point("mouseMoved", await cell(5.5, 0));
  assert.match(await text("status"), / · a collection$/);
  await open(`file://${file}#${await hash()}`);
  assert.match(await text("status"), /^all threads · 22\.00 kB/);
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

// Idle threads are away in wall mode, from everything on the page, until they are asked for.
async function testIdle() {
  await open(`file://${servedPage}`);
  assert.match(await text("idle-note"), /^Without 40\.00 ms of 74\.00 ms in which threads waited for work.*; 1 of 3 threads did nothing else\./);
  assert.strictEqual(await text("status"), "all threads · 34.00 ms (17 samples) · 100 % of wall-clock time without idle · self 0.00 %");
  const threads = () => evaluate('[...document.getElementById("thread").options].map(o => o.text).slice(1)');
  assert.deepStrictEqual(await threads(), ["thread 101 – 82.35 %", "Main (100) – 17.65 %"]);
  assert.strictEqual(await evaluate("Math.round(heat.cells.reduce((a, b) => a + b))"), 2 * 34000);
  assert.strictEqual(await evaluate('main.tree.widestNamed("epoll_fake")'), 0);
  await evaluate('document.getElementById("idle").focus()');
  await press("Enter");
  assert.match(await text("status"), /^all threads · 74\.00 ms \(37 samples\) · 100 % of wall-clock time · /);
  assert.match(await text("idle-note"), /^With 40\.00 ms of 74\.00 ms/);
  assert.strictEqual((await threads())[0], ".NET Sockets (103) – 54.05 %");
  assert.strictEqual(await hash(), "idle=on");
  await open(`file://${servedPage}#${await hash()}`);
  assert(await evaluate('main.tree.widestNamed("epoll_fake") > 0'));
  await click(await middle("#idle"));
  assert.strictEqual(await evaluate("state.tree.total[0]"), 34000);
}

// Plumbing is folded into one box for each run, with exact times, and opens by mouse and key.
async function testFolding() {
  const labels = () => evaluate(`Array.from(main.tree.frame, (frame, i) =>
    i === 0 ? "" : main.tree.recording.names[frame] + " " + main.tree.total[i] / 2000 + "/" + main.tree.self[i] / 2000)`);
  const POOL = "System.Threading.ThreadPoolWorkQueue.Dispatch", ROUTES = "Microsoft.AspNetCore.Routing.EndpointRoutingMiddleware.Invoke";
  const all = () => evaluate("state.tree.total[0]"), count = () => evaluate("main.tree.count");
  await open(`file://${servedPage}`);
  assert.deepStrictEqual(await labels(), ["", "▸ host 17/0", "▸ thread start 14/0", "▸ thread pool 14/0",
    "▸ Kestrel’s connection 14/0", "▸ middleware 14/0", `${WORK} 14/6`, "System.Linq.Enumerable.Sum 8/8",
    "Shop.Program.Main 3/3"]);
  // A double click opens it, and does nothing else.
  await hover("▸ middleware");
  assert.match(await text("tooltip"), /click to open: \S*HostFilteringMiddleware\.Invoke and \S*EndpointRoutingMiddleware\.Invoketotal28\.00 ms/);
  await click(await place("▸ middleware"), 2);
  assert.strictEqual(await evaluate("state.view"), "icicle");
  assert.deepStrictEqual(await zoomed(), [0, 34000]);
  assert((await labels()).includes(`${ROUTES} 2/0`) && (await labels()).includes(`${ROUTES} 4/0`), await labels());
  assert.strictEqual(await count(), 13);
  assert.match(await hash(), /^open=\d+$/);
  await open(`file://${servedPage}#${await hash()}`);
  assert.strictEqual(await count(), 13);
  // A zoom remains when another box is opened, and the keys do what the mouse does.
  await click(await place(WORK));
  assert.deepStrictEqual(await zoomed(), [0, 16000]);
  await evaluate("main.host.focus()");
  for (let i = 0; i < 10 && !(await text("status")).startsWith("▸ thread pool"); i++) await press("ArrowUp");
  await press("Enter");
  assert.match(await text("status"), /^System\.Threading\.PortableThreadPool\.WorkerThread\.WorkerThreadStart · 28\.00 ms/);
  assert.strictEqual(await count(), 14);
  await press("o");
  assert.strictEqual(await count(), 13);
  assert.match(await text("status"), /^▸ thread pool · 28\.00 ms \(14 samples\)/);
  await press("0");
  assert.strictEqual(await count(), 9);
  // A search finds what is folded, with the shares of the frames themselves.
  await choose("search", "EndpointRouting");
  assert.strictEqual(await text("matches"), "35.29 % of wall-clock time without idle matched, 1 frame");
  assert.strictEqual(await evaluate(`Array.from(main.tree.hits(state.recording.found)).flatMap((hit, i) =>
    hit ? [frameName(main.tree, i)] : []).join()`), "▸ middleware");
  await choose("search", "");
  // Everything else has all frames.
  await press("4");
  assert(await evaluate(`table.rows.some(row => state.recording.names[row.frame] === "${POOL}")`));
  assert(!(await column("name")).some(name => name.startsWith("▸")));
  await open(`file://${servedPage}#view=sandwich&method=${encodeURIComponent(WORK)}`);
  assert(await evaluate(`callers.tree.widestNamed("${ROUTES}") > 0`));
  await open(`file://${servedPage}#zoom=${POOL}`);
  assert.match(await text("status"), /^System\.Threading\.ThreadPoolWorkQueue\.Dispatch · 28\.00 ms/);
  await open(`file://${servedPage}#fold=off`);
  assert.strictEqual(await count(), 14);
  assert.strictEqual(await all(), 34000);
  await press("o");
  assert.strictEqual(await count(), 9);
  await evaluate('document.querySelector("#folds input[data-kind=fold]").click()');
  assert.strictEqual(await count(), 14);
}

// The lines above the graph: the hottest own code by what it costs itself and in others' code, what the
// program waited for, and what is odd.
async function testGlance() {
  const lines = () => evaluate('[...document.querySelectorAll("#glance li")].map(li => li.textContent)');
  await open(`file://${page}`);
  const [hot, cpu, note, ...rest] = await lines();
  assert.strictEqual(hot, "Hottest own code: Cart<Int32>.Work 12.00 ms (self 2.00 ms, total 12.00 ms) · " +
    "Program.Main 4.00 ms (self 0.00 ms, total 18.00 ms) · " + `${EVIL} 2.00 ms (self 2.00 ms, total 2.00 ms)`);
  assert.match(cpu, /^CPU: 22\.00 ms in [0-9.]+ s: [0-9.]+ processors busy on average$/);
  assert.match(note, /^Note: .*cpu: few samples \(11\)/);
  assert.deepStrictEqual(rest, []);
  await click(await middle("#glance button"));
  assert.strictEqual(await text("pick"), WORK);
  // The time asleep in wall mode is waiting; events of waits say for what, but not those of idle threads.
  const file = rewrite(page, "waits.html", data => {
    const wait = structuredClone(data.modes[0]);
    wait.facts = {...wait.facts, mode: "wait", what: ["wait", "waits"], whole: "waiting time"};
    wait.strings = wait.strings.map(name => name === "System.Linq.Enumerable.Sum" ? "Task" :
      name === "Shop.Late.Comer" ? "[idle: timers]" : name);
    data.modes.push(wait);
    data.pool = "8 workers, at most 32 items queued (at 0.5 s); starved in 3 of 4 looks";
  });
  await open(`file://${file}`);
  const waits = (await lines()).find(line => line.startsWith("Longest waits:"));
  assert((await lines()).includes("Thread pool: 8 workers, at most 32 items queued (at 0.5 s); starved in 3 of 4 looks"));
  assert(waits.startsWith("Longest waits: 8.00 ms for Task in Cart<Int32>.Work · "), waits);
  assert(!waits.includes("idle"), waits);
  // A wait for a lock that both modes have counts once.
  const locks = rewrite(file, "locks.html", data => {
    data.modes[1].strings = data.modes[1].strings.map(name => name === "Task" ? "Monitor.Enter" : name);
    data.modes.push({...structuredClone(data.modes[1]), facts: {...data.modes[1].facts, mode: "lock"}});
    data.modes[2].strings = data.modes[2].strings.map(name => name === "Monitor.Enter" ? "[held by Main]" : name);
  });
  await open(`file://${locks}`);
  const both = (await lines()).find(line => line.startsWith("Longest waits:"));
  assert(both.startsWith("Longest waits: 8.00 ms for [held by Main] in Cart<Int32>.Work · ") && !both.includes("Monitor"), both);
  await open(`file://${file}`);
  await evaluate('[...document.querySelectorAll("#glance li")].find(li => li.textContent.startsWith("Longest")).querySelector("button").click()');
  assert.strictEqual(await text("pick"), WORK);
  assert.strictEqual(await evaluate('state.recording.facts.mode'), "wait");
  // The way to a safe point, by the method of the thread that held it up, whatever the reason.
  const gc = rewrite(file, "gc.html", data => {
    data.modes[1].facts = {...data.modes[1].facts, mode: "gc"};
    data.modes[1].strings = data.modes[1].strings.map(name => name === "Task" ? "[holds up GC: not scheduled]" : name);
  });
  await open(`file://${gc}`);
  assert.deepStrictEqual((await lines()).filter(line => line.startsWith("Pauses held up:")),
    ["Pauses held up: 8.00 ms in Cart<Int32>.Work"]);
  // Who held the locks that others waited for.
  const holders = rewrite(file, "holders.html", data => {
    data.modes[1].facts = {...data.modes[1].facts, mode: "holders"};
    data.modes[1].strings = data.modes[1].strings.map(name => name === "Task" ? "[holds System.Object]" : name);
  });
  await open(`file://${holders}`);
  assert.deepStrictEqual((await lines()).filter(line => line.startsWith("Waits for locks:")),
    ["Waits for locks: 22.00 ms, held by Cart<Int32>.Work 36.36 %"]);
  // Both in a window of any width, with the first method's name, and what is not covered.
  const narrow = rewrite(holders, "narrow.html", data => {
    data.modes.push({...structuredClone(data.modes[1]), facts: {...data.modes[1].facts, mode: "lock"}});
    data.modes[2].strings = data.modes[2].strings.map(name => name === "[holds System.Object]" ? "[System.Object held by auditor]" : name);
  });
  for (const [width, height] of [[1400, 900], [900, 800], [480, 800]]) {
    await send("Emulation.setDeviceMetricsOverride", {width, height, deviceScaleFactor: 1, mobile: false});
    await open(`file://${narrow}#mode=lock`);
    const whole = await evaluate(`[...document.querySelectorAll("#glance li")].filter(li => /^(Longest waits|Waits for locks)/.test(li.textContent))
      .map(li => [li.getBoundingClientRect(), li.querySelector("button").getBoundingClientRect()])
      .map(([line, name]) => line.height > 0 && name.right <= line.right && name.bottom <= line.bottom + 1)`);
    assert.deepStrictEqual(whole, [true, true], `${width} pixels`);
    const facts = await evaluate(`[...document.querySelectorAll("#facts > *")].map(fact => fact.getBoundingClientRect().right <= innerWidth)`);
    assert(facts.length > 3 && facts.every(inside => inside), `facts are cut at ${width} pixels`);
  }
  await send("Emulation.clearDeviceMetricsOverride");
  await open(`file://${diffPage}`);
  assert((await lines()).every(line => line.startsWith("Hottest own code:")), await lines());
  // Lines of one method are one method, with the name of the hottest line.
  const lined = rewrite(page, "lined.html", ({modes: [mode]}) => {
    mode.strings = mode.strings.map(name => name === WORK ? `${WORK} (Cart.cs:12)` :
      name === "Shop.Program.Main" ? `${WORK} (Cart.cs:7)` : name);
  });
  await open(`file://${lined}`);
  assert((await lines())[0].startsWith("Hottest own code: Cart<Int32>.Work 16.00 ms (self 2.00 ms, total 20.00 ms; " +
    "hottest line Cart.cs:12) · "), (await lines())[0]);
}

// A search that finds something in another mode only says so.
async function testElsewhere() {
  const file = rewrite(page, "elsewhere.html", data => {
    const lock = structuredClone(data.modes[0]);
    lock.facts = {...lock.facts, mode: "lock", what: ["wait", "waits"], whole: "waiting time"};
    lock.strings = lock.strings.map(name => name === WORK ? "Shop.Audit.Write" : name);
    data.modes.push(lock);
  });
  await open(`file://${file}#search=audit`);
  assert.strictEqual(await text("elsewhere"), "Nothing in mode cpu matches. There are hits in mode lock (1 frame).");
  await evaluate('document.querySelector("#elsewhere button").click()');
  assert.strictEqual(await evaluate('state.recording.facts.mode'), "lock");
  assert.strictEqual(await evaluate('document.getElementById("elsewhere").hidden'), true);
  assert.match(await text("matches"), /of waiting time matched, 1 frame$/);
  await open(`file://${file}#search=nowhere`);
  assert.strictEqual(await text("elsewhere"), "Nothing in mode cpu matches. Nor does anything in another mode.");
  await open(`file://${file}#search=main`);
  assert.strictEqual(await evaluate('document.getElementById("elsewhere").hidden'), true);
}

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

async function testFirst() {
  await open(`file://${page}`);
  await testFacts();
}

run([testFirst, testZoom, testTooltip, testSearch, testThreads, testNative, testShortNames, testKeys,
  testLink, testTimeline, testTimelineKeys, testSandwich, testMethods, testFocus, testFolds,
  testColors, testContrast, testDiff, testChanges, testDiffModes, testInlined, testGrown, testModes, testLongProgram,
  testIdle, testFolding, testGlance, testShort, testElsewhere, testRoutes, testTraces, testHits, testMany]);
