// SPDX-License-Identifier: MIT
// What comes with other modes and options: inlined methods, several modes, idle threads, plumbing, the lines above the graph.
"use strict";
const assert = require("assert");
const {send, evaluate, text, open, press, point, click, middle, choose} = require("./browser.js");
const {page, diffPage, servedPage, place, hover, zoomed, hash, column, cell, rewrite, WORK,
  EVIL} = require("./page_parts.js");

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

// A page of two modes with marks: the golden recording's data, and the same data again as bytes.
async function testModes() {
  const file = rewrite(page, "with-alloc.html", data => {
    const alloc = structuredClone(data.modes[0]);  // of the same columns
    alloc.facts = {...alloc.facts, mode: "alloc", unit: "bytes", runtime: "9.0.22"};
    delete alloc.tenthsOff;
    data.modes.push(alloc);
    data.marks = [[5000, 1000, "a collection"]];
  });
  await open(`file://${file}`);
  assert.match(await text("status"), /^all threads · 22\.00 ms/);
  assert.match(await text("facts"), /shares ±/);
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
  assert.match(await text("facts"), /shares may be far off/);  // .NET 9 does not choose objects at random
  assert.doesNotMatch(await text("facts"), /shares ±/);
  assert.match(await hash(), /^mode=alloc/);
  await point("mouseMoved", await cell(5.5, 0));
  assert.match(await text("status"), / · a collection$/);
  await open(`file://${file}#${await hash()}`);
  assert.match(await text("status"), /^all threads · 22\.00 kB/);
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
  const [hot, note, cpu, ...rest] = await lines();
  assert.strictEqual(hot, "Hottest own code: Cart<Int32>.Work 12.00 ms (self 2.00 ms, total 12.00 ms) · " +
    "Program.Main 4.00 ms (self 0.00 ms, total 18.00 ms) · " + `${EVIL} 2.00 ms (self 2.00 ms, total 2.00 ms)`);
  assert.match(cpu, /^CPU: 22\.00 ms in [0-9.]+ s: [0-9.]+ of 4 processors busy on average$/);
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
    data.pool = "8 workers, at most 32 items queued (at 0.5 s); starved in 3 of 4 scans";
  });
  await open(`file://${file}`);
  const waits = (await lines()).find(line => line.startsWith("Longest waits:"));
  assert((await lines()).includes("Thread pool: 8 workers, at most 32 items queued (at 0.5 s); starved in 3 of 4 scans"));
  assert(waits.startsWith("Longest waits: Cart<Int32>.Work 8.00 ms for Task · "), waits);
  assert(!waits.includes("idle"), waits);
  // A wait for a lock that both modes have counts once.
  const locks = rewrite(file, "locks.html", data => {
    data.modes[1].strings = data.modes[1].strings.map(name => name === "Task" ? "Monitor.Enter" : name);
    data.modes.push({...structuredClone(data.modes[1]), facts: {...data.modes[1].facts, mode: "lock"}});
    data.modes[2].strings = data.modes[2].strings.map(name => name === "Monitor.Enter" ? "[held by Main]" : name);
  });
  await open(`file://${locks}`);
  const both = (await lines()).find(line => line.startsWith("Longest waits:"));
  assert(both.startsWith("Longest waits: Cart<Int32>.Work 8.00 ms for [held by Main] · ") && !both.includes("Monitor"), both);
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
    ["Pauses held up: Cart<Int32>.Work 8.00 ms"]);
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
    data.pool = "8 workers, nothing queued; not starved in 4 scans";
    data.modes.push({...structuredClone(data.modes[1]), facts: {...data.modes[1].facts, mode: "lock"}});
    data.modes[2].strings = data.modes[2].strings.map(name => name === "[holds System.Object]" ? "[System.Object held by auditor]" : name);
  });
  for (const [width, height] of [[1400, 900], [900, 800], [900, 600], [480, 800], [480, 600]]) {
    await send("Emulation.setDeviceMetricsOverride", {width, height, deviceScaleFactor: 1, mobile: false});
    await open(`file://${narrow}#mode=lock`);
    const whole = await evaluate(`[...document.querySelectorAll("#glance li")].filter(li => /^(Longest waits|Waits for locks)/.test(li.textContent))
      .map(li => [li.getBoundingClientRect(), li.querySelector("button").getBoundingClientRect()])
      .map(([line, name]) => line.height > 0 && name.right <= line.right && name.bottom <= line.bottom + 1)`);
    assert.deepStrictEqual(whole, [true, true], `${width} x ${height} pixels`);
    // One row of facts, which fades out at its end, and all of them in the panel.
    const facts = await evaluate(`[...document.querySelectorAll("#facts > *")].filter(fact => ![...document.querySelectorAll("#cost > *")]
      .some(other => other.textContent === fact.textContent)).length`);
    assert.strictEqual(facts, 0, "facts that are not in the panel");
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

// The header is low at any width, with all modes and many lines; what it does not show is one click away.
async function testHeader() {
  const file = rewrite(page, "header.html", data => {
    const [first] = data.modes;
    for (const mode of ["wall", "alloc", "lock", "wait", "holders", "exception", "gc"])
      data.modes.push({...structuredClone(first), facts: {...first.facts, mode}});
    data.pool = "8 workers, at most 32 items queued (at 0.5 s); starved in 3 of 4 scans";
    data.odd = ["few samples.", "A note that is long. ".repeat(20)];
  });
  const first = () => evaluate(`(() => {
    const all = [...document.querySelectorAll("#glance li")];
    return {all: all.length, seen: all.filter(li => li.getBoundingClientRect().height > 0).length, top: all[0].textContent,
      cut: all.filter(li => li.scrollWidth > li.clientWidth).length, main: document.querySelector("main").getBoundingClientRect().top,
      header: document.querySelector("header").getBoundingClientRect().height,
      wide: document.documentElement.scrollWidth - innerWidth, more: document.getElementById("glance-more").textContent};
  })()`);
  for (const [width, height, most] of [[1400, 900, 190], [900, 800, 190], [480, 800, 190], [480, 600, 190]]) {
    await send("Emulation.setDeviceMetricsOverride", {width, height, deviceScaleFactor: 1, mobile: false});
    await open(`file://${file}#heat=off`);
    const shown = height > 700 && width > 700 ? 4 : 3;
    const closed = await first();
    assert(closed.header <= most && closed.wide <= 0, `the header at ${width} x ${height}: ${JSON.stringify(closed)}`);
    assert(closed.all > 4 && closed.seen === shown && closed.top.startsWith("Thread pool: "), JSON.stringify(closed));
    assert.strictEqual(closed.more, `${closed.all - shown} more`);
    await click(await middle("#glance-more"));
    const opened = await first();
    assert(opened.seen === opened.all && opened.cut === 0 && Math.abs(opened.header - closed.header) < 1, JSON.stringify([closed, opened]));
    await press("Escape");
    assert.strictEqual((await first()).seen, shown);
    await press("g");
    assert.strictEqual((await first()).seen, opened.all);
    await press("g");
    await scrollChoices(width);
  }
  await send("Emulation.clearDeviceMetricsOverride");
}

// Where the row of choices does not fit, an arrow at its right end says so until it is scrolled there.
async function scrollChoices(width) {
  const state = () => evaluate(`(() => {
    const row = document.querySelector(".choices");
    return {hidden: row.scrollWidth - row.clientWidth > 2, arrow: getComputedStyle(row, "::after").visibility === "visible" &&
      getComputedStyle(row, "::after").content !== "none"};
  })()`);
  const before = await state();
  assert.deepStrictEqual(before, {hidden: width < 850, arrow: width < 850}, `${width}`);
  await evaluate(`document.querySelector(".choices").scrollTo(9999, 0)`);
  await new Promise(resolve => setTimeout(resolve, 200));
  assert.strictEqual((await state()).arrow, false);
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
  assert.strictEqual(await text("elsewhere"), "Nothing in cpu mode matches. There are hits in lock mode (1 frame).");
  await evaluate('document.querySelector("#elsewhere button").click()');
  assert.strictEqual(await evaluate('state.recording.facts.mode'), "lock");
  assert.strictEqual(await evaluate('document.getElementById("elsewhere").hidden'), true);
  assert.match(await text("matches"), /of waiting time matched, 1 frame$/);
  await open(`file://${file}#search=nowhere`);
  assert.strictEqual(await text("elsewhere"), "Nothing in cpu mode matches. Nor does anything in another mode.");
  await open(`file://${file}#search=main`);
  assert.strictEqual(await evaluate('document.getElementById("elsewhere").hidden'), true);
}

module.exports = {testHeader, testInlined, testModes, testIdle, testFolding, testGlance, testElsewhere};
