// SPDX-License-Identifier: MIT
// A headless Chromium, and what a person does with it: press keys, move the mouse, look. It is controlled through its
// debugging pipe (file descriptors 3 and 4, JSON terminated by a NUL), so nothing needs to be installed from a
// registry.
"use strict";
const {spawn} = require("child_process");
const fs = require("fs"), os = require("os"), path = require("path"), assert = require("assert");

// WebGL without a GPU halves the speed of all drawing, so it is used only for pages that need it.
const drawing = process.env.BROWSER_WEBGL ?
  ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"] : ["--disable-gpu"];
const profile = fs.mkdtempSync(path.join(os.tmpdir(), "browser-profile-"));
const browser = spawn(process.argv[2], ["--headless", "--no-sandbox", "--disable-quic", ...drawing,
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
// The page animates a zoom, so this waits for a state and not for a time.
const settled = () => evaluate(`new Promise(done => {
  let last = "";
  const look = () => {
    if (document.documentElement.dataset.ready !== "yes") return setTimeout(look, 5);
    const now = String([main, callers, callees].map(chart => [chart.from, chart.to]));
    if (now === last) return done();
    last = now;
    requestAnimationFrame(() => requestAnimationFrame(look));
  };
  look();
})`);

async function navigate(url) {
  const ready = new Promise(resolve => { loaded = resolve; });
  await send("Page.navigate", {url: "about:blank"});
  await ready;
  const there = new Promise(resolve => { loaded = resolve; });
  await send("Page.navigate", {url});
  await there;
}

async function open(url) {
  await navigate(url);
  await settled();
}

const KEYS = {Tab: 9, Home: 36, End: 35, PageDown: 34, PageUp: 33,
  Escape: 27, Backspace: 8, Enter: 13, ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40};
async function press(key, shift = false) {
  const code = KEYS[key], modifiers = shift ? 8 : 0;
  const event = code ? {key, code: key, windowsVirtualKeyCode: code, modifiers} :
    {key, text: key, modifiers};
  if (key === "Enter") event.text = "\r";
  await send("Input.dispatchKeyEvent", {type: "keyDown", ...event});
  await send("Input.dispatchKeyEvent", {type: "keyUp", ...event});
  await settled();
}

// Replaces the text of the focused field.
async function keyed(text) {
  await evaluate("document.activeElement.select()");
  await send("Input.insertText", {text});
  await settled();
}

async function point(type, {x, y}, more = {}) {
  await send("Input.dispatchMouseEvent", {type, x, y, ...more});
}

async function click({x, y}, clickCount = 1) {
  for (let i = 1; i <= clickCount; i++) {
    await point("mousePressed", {x, y}, {button: "left", buttons: 1, clickCount: i});
    await point("mouseReleased", {x, y}, {button: "left", clickCount: i});
  }
  await settled();
}

async function drag(from, to) {
  await point("mouseMoved", from);
  await point("mousePressed", from, {button: "left", buttons: 1, clickCount: 1});
  await point("mouseMoved", {x: (from.x + to.x) / 2, y: (from.y + to.y) / 2}, {button: "left", buttons: 1});
  await point("mouseMoved", to, {button: "left", buttons: 1});
  await point("mouseReleased", to, {button: "left", clickCount: 1});
  await settled();
}

const middle = selector => evaluate(`(() => {
  const box = document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect();
  return {x: box.left + box.width / 2, y: box.top + box.height / 2};
})()`);

async function choose(id, value) {
  await evaluate(`{ const box = document.getElementById("${id}"); box.value = ${JSON.stringify(value)};
    box.dispatchEvent(new Event(box.tagName === "INPUT" ? "input" : "change")); }`);
  await settled();
}

async function screenshot(file, width, height) {
  await send("Emulation.setDeviceMetricsOverride", {width, height, deviceScaleFactor: 1, mobile: false});
  await settled();
  const {data} = await send("Page.captureScreenshot", {format: "png"});
  fs.writeFileSync(file, Buffer.from(data, "base64"));
}

async function begin() {
  const {targetInfos} = await send("Target.getTargets");
  const {targetId} = targetInfos.find(target => target.type === "page");
  session = (await send("Target.attachToTarget", {targetId, flatten: true})).sessionId;
  for (const domain of ["Page", "Runtime", "Network", "Log"]) await send(`${domain}.enable`);
}

// The browser's own children may still be writing there after it has ended.
async function removeProfile() {
  for (let i = 0; i < 50 && fs.existsSync(profile); i++) {
    try {
      fs.rmSync(profile, {recursive: true, force: true});
    } catch (error) {
      if (error.code !== "ENOTEMPTY") throw error;
      await new Promise(resolve => setTimeout(resolve, 100));
    }
  }
}

// Runs the tests, and ends the browser and this program with exit code 0 or 1.
async function run(tests) {
  let code = 0;
  try {
    await begin();
    for (const test of tests) {
      await test();
      console.log(`ok ${test.name}`);
    }
    assert.deepStrictEqual(complaints, []);
    const foreign = requests.filter(url => !/^(file|data|about|blob):/.test(url));
    assert.deepStrictEqual(foreign, [], "the page went to the network");
  } catch (error) {
    console.log(`FAIL: ${error.stack}`);
    for (const complaint of complaints) console.log(`the page: ${complaint}`);
    code = 1;
  }
  const gone = new Promise(resolve => browser.once("exit", resolve));
  browser.kill();
  await gone;
  await removeProfile();
  process.exit(code);
}

module.exports = {send, evaluate, text, settled, navigate, open, press, point, click, drag, middle, choose,
  screenshot, run, keyed};
