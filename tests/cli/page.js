// SPDX-License-Identifier: MIT
// Drives the flame graph page in a headless Chromium as a person would: mouse and keys in, what the
// page says out. Usage: node page.js CHROMIUM PAGE.html MANY.html. Exit code 0 or 1.
//
// It talks to the browser over its debugging pipe (file descriptors 3 and 4, JSON with a NUL
// behind), so nothing needs to be installed from a registry.
"use strict";
const {spawn} = require("child_process");
const fs = require("fs"), os = require("os"), path = require("path"), assert = require("assert");

const [chromium, page, manyPage] = process.argv.slice(2);
const profile = fs.mkdtempSync(path.join(os.tmpdir(), "clrsnap-page-"));
const browser = spawn(chromium, ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
  "--no-first-run", "--disable-background-networking", "--disable-component-update",
  "--disable-sync", "--remote-debugging-pipe", `--user-data-dir=${profile}`,
  "--window-size=1400,900", "about:blank"], {stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"]});

const waiting = new Map(), requests = [], complaints = [];
let lastId = 0, session, loaded = () => {}, rest = Buffer.alloc(0);

browser.stdio[4].on("data", chunk => {
  rest = Buffer.concat([rest, chunk]);
  for (let end; (end = rest.indexOf(0)) >= 0; rest = rest.subarray(end + 1)) {
    receive(JSON.parse(rest.subarray(0, end).toString()));
  }
});

function receive(message) {
  if (message.id) {
    const {resolve, reject} = waiting.get(message.id);
    waiting.delete(message.id);
    if (message.error) reject(new Error(message.error.message));
    else resolve(message.result);
    return;
  }
  const {method, params} = message;
  if (method === "Page.loadEventFired") loaded();
  if (method === "Network.requestWillBeSent") requests.push(params.request.url);
  if (method === "Runtime.exceptionThrown") complaints.push(params.exceptionDetails.exception.description);
  if (method === "Log.entryAdded" && params.entry.level === "error") complaints.push(params.entry.text);
}

function send(method, params = {}) {
  const id = ++lastId;
  browser.stdio[3].write(JSON.stringify({id, method, params, sessionId: session}) + "\0");
  return new Promise((resolve, reject) => waiting.set(id, {resolve, reject}));
}

async function evaluate(expression) {
  const answer = await send("Runtime.evaluate", {expression, returnByValue: true, awaitPromise: true});
  if (answer.exceptionDetails) throw new Error(answer.exceptionDetails.exception.description);
  return answer.result.value;
}

const text = id => evaluate(`document.getElementById("${id}").textContent`);
// The page animates a zoom; its end is a state, not a time.
const settled = () => evaluate(`new Promise(done => {
  let from = NaN, to = NaN;
  const look = () => {
    if (from === state.from && to === state.to) return done();
    [from, to] = [state.from, state.to];
    requestAnimationFrame(() => requestAnimationFrame(look));
  };
  look();
})`);

async function open(url) {
  const ready = new Promise(resolve => { loaded = resolve; });
  await send("Page.navigate", {url: "about:blank"});
  await ready;
  const there = new Promise(resolve => { loaded = resolve; });
  await send("Page.navigate", {url});
  await there;
  await evaluate("new Promise(done => { const look = () => recording ? done() : setTimeout(look, 5); look(); })");
  await settled();
}

const KEYS = {Escape: 27, Backspace: 8, Enter: 13, ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40};
async function press(key) {
  const code = KEYS[key];
  const event = code ? {key, code: key, windowsVirtualKeyCode: code} : {key, text: key};
  await send("Input.dispatchKeyEvent", {type: "keyDown", ...event});
  await send("Input.dispatchKeyEvent", {type: "keyUp", ...event});
  await settled();
}

// Where the first node of that name is drawn.
const place = name => evaluate(`(() => {
  const node = state.view.widestNamed(${JSON.stringify(name)}), box = canvas.getBoundingClientRect();
  const x = toPixel(state.view.left[node] + state.view.total[node] / 2);
  return {x: box.left + x, y: box.top + rowTop(state.view.depth[node]) + ROW / 2};
})()`);

async function mouse(name, click) {
  const {x, y} = await place(name);
  await send("Input.dispatchMouseEvent", {type: "mouseMoved", x, y});
  if (!click) return;
  for (const type of ["mousePressed", "mouseReleased"]) {
    await send("Input.dispatchMouseEvent", {type, x, y, button: "left", clickCount: 1});
  }
  await settled();
}

async function choose(id, value) {
  await evaluate(`{ const box = document.getElementById("${id}"); box.value = ${JSON.stringify(value)};
    box.dispatchEvent(new Event(box.tagName === "INPUT" ? "input" : "change")); }`);
  await settled();
}

const WORK = "Shop.Cart<System.Int32>.Work", EVIL = 'Odd</script>;"\\\n.M.lambda#0';

async function testFacts() {
  const facts = await text("facts");
  for (const part of ["11 samples", "cpu mode at 499 Hz", ".NET 10.0.12", "0 lost",
    "81.81 % of the stacks complete", "threads held 3.0 / 8.0 / 8.0 µs", "runtime stopped 0 times"]) {
    assert(facts.includes(part), `facts: ${part} is not in ${facts}`);
  }
  assert.match(await text("program"), /fake_agent golden/);
  assert.match(await evaluate("document.title"), /fake_agent golden/);
  assert.strictEqual(await text("status"), "all threads · 11 samples · 100 % · self 0.00 %");
}

async function testZoom() {
  await mouse(WORK, true);
  assert.match(await text("status"), /^Shop\.Cart<System\.Int32>\.Work · 5 samples · 45\.45 %/);
  assert.deepStrictEqual(await evaluate("[state.from, state.to]"), [0, 5]);
  await mouse("[libcoreclr.so]", true);
  assert.deepStrictEqual(await evaluate("[state.from, state.to]"), [4, 5]);
  await press("Backspace");
  assert.deepStrictEqual(await evaluate("[state.from, state.to]"), [0, 5]);
  await press("Escape");
  assert.deepStrictEqual(await evaluate("[state.from, state.to]"), [0, 11]);
}

async function testTooltip() {
  await mouse(EVIL, false);
  const tip = await text("tooltip");
  assert(tip.startsWith(EVIL), `tooltip: ${tip}`);
  assert(tip.includes("app.dll · your code"), `tooltip: ${tip}`);
  assert(tip.includes("1 sample9.09 %") && tip.includes("of its caller11.11 %"), `tooltip: ${tip}`);
}

async function testSearch() {
  await press("/");
  assert.strictEqual(await evaluate("document.activeElement.id"), "search");
  await choose("search", "linq.*sum$");
  assert.strictEqual(await text("matches"), "45.45 % matched, 1 frame");
  await choose("search", "Work");  // recursion counts once
  assert.strictEqual(await text("matches"), "54.54 % matched, 1 frame".replace("54.54", "54.55"));
  await choose("search", "(");
  assert.strictEqual(await text("matches"), "not a regular expression");
  await choose("search", "cut:");
  assert.strictEqual(await text("matches"), "18.18 % matched, 2 frames");
  await press("Escape");
  assert.strictEqual(await text("matches"), "");
}

async function testThreads() {
  const options = await evaluate('[...document.getElementById("thread").options].map(o => o.text)');
  assert.deepStrictEqual(options, ["all, merged (2)", "Main (100) – 63.64 %", "thread 101 – 36.36 %"]);
  await choose("thread", "1");
  assert.strictEqual(await text("status"), "thread 101 · 4 samples · 100 % · self 0.00 %");
  await choose("unit", "time");
  assert.strictEqual(await text("status"), "thread 101 · 8.00 ms · 100 % · self 0.00 %");
  await choose("unit", "samples");
  await choose("thread", "-1");
}

async function testNative() {
  assert(await evaluate('state.view.widestNamed("[libcoreclr.so]") > 0'));
  await evaluate('document.getElementById("native").click()');
  assert.strictEqual(await evaluate('state.view.widestNamed("[libcoreclr.so]")'), 0);
  assert.strictEqual(await text("status"), "all threads · 11 samples · 100 % · self 0.00 %");
  // What the native leaves cost is their callers' own now.
  await mouse("Shop.Program.Main", false);
  assert.match(await text("status"), /^Shop\.Program\.Main · 9 samples · 81\.82 % · self 9\.09 %/);
  await evaluate('document.getElementById("native").click()');
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
}

async function testKeys() {
  await evaluate("scroller.focus()");
  await press("ArrowDown");
  await press("ArrowDown");
  assert.match(await text("status"), /^Shop\.Program\.Main · 9 samples/);
  await press("ArrowRight");
  assert.match(await text("status"), /^\[cut: /);
  await press("ArrowLeft");
  await press("ArrowDown");
  await press("Enter");
  assert.deepStrictEqual(await evaluate("[state.from, state.to]"), [0, 5]);
  await press("f");
  assert.strictEqual(await evaluate("state.flame"), true);
  await press("ArrowUp");
  assert.match(await text("status"), /^System\.Linq\.Enumerable\.Sum · 4 samples/);
  const dark = await evaluate("state.dark");
  await press("t");
  assert.strictEqual(await evaluate("state.dark"), !dark);
  await press("?");
  assert.strictEqual(await evaluate('document.getElementById("keys").open'), true);
  await press("Escape");
  assert.strictEqual(await evaluate('document.getElementById("keys").open'), false);
}

async function testLink() {
  await open(`file://${page}#thread=101&view=flame&theme=dark&search=Sum&zoom=${encodeURIComponent(WORK)}`);
  assert.strictEqual(await text("matches"), "50.00 % matched, 1 frame");
  assert.match(await text("status"), /^Shop\.Cart<System\.Int32>\.Work · /);
  assert(await evaluate('state.flame && state.dark && document.documentElement.classList.contains("dark")'));
}

// 100,000 distinct stacks: what is drawn is bounded by the window, not by the recording.
async function testMany() {
  await open(`file://${manyPage}`);
  assert.match(await text("status"), /^all threads · 100,000 samples/);
  const drawn = await evaluate(`(() => {
    let boxes = 0;
    const fill = ink.fillRect;
    ink.fillRect = (...a) => { boxes++; fill.apply(ink, a); };
    draw();
    ink.fillRect = fill;
    return boxes;
  })()`);
  const nodes = await evaluate("state.view.count");
  assert(nodes > 1e6, `${nodes} nodes`);
  assert(drawn > 10 && drawn < 20000, `${drawn} boxes drawn`);
}

async function main() {
  const {targetInfos} = await send("Target.getTargets");
  const {targetId} = targetInfos.find(target => target.type === "page");
  session = (await send("Target.attachToTarget", {targetId, flatten: true})).sessionId;
  for (const domain of ["Page", "Runtime", "Network", "Log"]) await send(`${domain}.enable`);
  await open(`file://${page}`);
  for (const test of [testFacts, testZoom, testTooltip, testSearch, testThreads, testNative, testShortNames, testKeys, testLink, testMany]) {
    await test();
    console.log(`ok ${test.name}`);
  }
  assert.deepStrictEqual(complaints, []);
  const foreign = requests.filter(url => !/^(file|data|about):/.test(url));
  assert.deepStrictEqual(foreign, [], "the page went to the network");
}

main().then(() => 0, error => {
  console.log(`FAIL: ${error.stack}`);
  return 1;
}).then(async code => {
  const gone = new Promise(resolve => browser.once("exit", resolve));
  browser.kill();
  await gone;
  fs.rmSync(profile, {recursive: true, force: true, maxRetries: 10});
  process.exit(code);
});
