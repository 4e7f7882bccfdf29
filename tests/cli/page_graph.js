// SPDX-License-Identifier: MIT
// The graph of a recording: boxes, search, threads, names, keys, links, the timeline, the sandwich, the table of methods.
"use strict";
const assert = require("assert");
const {evaluate, text, open, press, point, click, drag, middle, choose} = require("./browser.js");
const {page, place, hover, pick, zoomed, hash, focused, column, cell, rewrite, WORK, EVIL} = require("./page_parts.js");

async function testFacts() {
  await open(`file://${page}`);
  const facts = await text("facts"), cost = await text("cost");
  for (const part of ["11 samples", "22.00 ms of CPU time", "cpu mode at 499 Hz", "shares ±29.5 points", ".NET 10.0.12"]) {
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

// What was not walked has no time: it is in no cell and in no span.
async function testTimeless() {
  const file = rewrite(page, "timeless.html", ({modes: [mode]}) => {
    mode.strings.push("[stacks that were not walked]");
    mode.threads.find(([, tid]) => tid === 101)[0] = mode.strings.length - 1;
  });
  await open(`file://${file}`);
  assert.match(await text("status"), /^all threads · 22\.00 ms \(11 samples\)/);
  assert.strictEqual(await evaluate("Math.round(heat.cells.reduce((a, b) => a + b))"), 28000);
  await point("mouseMoved", await cell(5.5, 2));
  assert.strictEqual(await text("status"), "[stacks that were not walked] (101) · at times that are not known");
  await drag(await cell(0, 0), await cell(10.9, 0));
  assert.match(await text("status"), /^all threads · 14\.00 ms \(7 samples\)/);
}

module.exports = {testFacts, testZoom, testTooltip, testSearch, testThreads, testNative, testShortNames, testKeys,
  testLink, testTimeline, testTimelineKeys, testSandwich, testMethods, testFocus, testFolds,
  testTimeless};
