// The page: draws a View on one canvas that is as large as the window, only what is visible in it,
// and nothing narrower than half a pixel; so the cost of a frame does not depend on the recording.

const ROW = 19;             // pixels
const MIN_WIDTH = 0.5;      // narrower nodes are drawn together, as one shaded strip
const LABEL_MIN = 26;
const FONT = '12px ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", monospace';
const ZOOM_MS = 160;

// Hue, saturation, lightness (light theme, dark theme) by kind: see Recording.kinds.
const PALETTE = {
  user: [26, 82, 70, 60], framework: [208, 62, 74, 62], dynamic: [275, 48, 78, 69],
  runtime: [152, 38, 68, 54], native: [46, 16, 74, 58], cut: [352, 70, 76, 66],
};

const $ = id => document.getElementById(id);
const number = new Intl.NumberFormat("en-US");
const percent = (part, whole) => {
  if (whole <= 0) return "0 %";
  return (100 * part / whole).toFixed(part === whole ? 0 : 2) + " %";
};

let recording;  // a Recording
const canvas = $("canvas"), scroller = $("scroller"), ink = canvas.getContext("2d");
const state = {
  thread: ALL_THREADS, unit: "samples", native: true, view: null, flame: false, dark: false,
  from: 0, to: 1,          // what part of the graph is drawn, in the unit of View.left
  history: [],             // nodes zoomed to before
  focus: 0, selected: -1, hovered: -1,
  search: null, animation: 0, width: 0, height: 0,
};

// ---- words --------------------------------------------------------------------------------------

function frameName(node) {
  if (node > 0) return recording.names[state.view.frame[node]];
  if (state.thread === ALL_THREADS) return "all threads";
  return threadName(recording.threads[state.thread]);
}

function threadName(thread) {
  if (thread.name) return thread.tid ? `${thread.name} (${thread.tid})` : thread.name;
  return thread.tid ? `thread ${thread.tid}` : "unknown thread";
}

function amount(value) {
  if (state.unit === "samples") return `${number.format(value)} sample${value === 1 ? "" : "s"}`;
  return value >= 1e6 ? `${(value / 1e6).toFixed(2)} s` : `${(value / 1e3).toFixed(2)} ms`;
}

function describe(node) {
  const v = state.view;
  return `${frameName(node)} · ${amount(v.total[node])} · ${percent(v.total[node], v.total[0])}` +
    ` · self ${percent(v.self[node], v.total[0])}`;
}

function showStatus() {
  const node = [state.hovered, state.selected].find(candidate => candidate >= 0);
  $("status").textContent = describe(node ?? state.focus);
}

// ---- drawing ------------------------------------------------------------------------------------

const colors = new Map();
function color(frame) {
  if (!colors.has(frame)) {
    const root = state.dark ? "#5b636e" : "#c9c5bd";
    colors.set(frame, frame < 0 ? root :
      shade(recording.kinds[recording.frameKinds[frame]][0], recording.names[frame]));
  }
  return colors.get(frame);
}

// One hue per kind; neighbours are told apart by a lightness that their name decides.
function shade(kind, name) {
  let hash = 0;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash, 31) + name.charCodeAt(i) | 0;
  const [hue, saturation, light, dark] = PALETTE[kind];
  const turn = (hash >>> 16) % 9 - 4, lift = (hash >>> 8) % 13 - 6;
  return `hsl(${hue + turn} ${saturation}% ${(state.dark ? dark : light) + lift}%)`;
}

const labels = new Map();  // frame -> [{text, width}], longest first
function label(frame, node, room) {
  if (frame < 0) return clip(`${frameName(node)} · ${amount(state.view.total[node])}`, room);
  if (!labels.has(frame)) {
    labels.set(frame, shortNames(recording.names[frame]).map(
      text => ({text, width: ink.measureText(text).width})));
  }
  const forms = labels.get(frame);
  const fit = forms.find(form => form.width <= room);
  return fit ? fit.text : clip(forms[forms.length - 1].text, room);
}

const letterWidth = () => label.letter ??= ink.measureText("m").width;
function clip(text, room) {
  const letters = Math.floor(room / letterWidth());
  if (text.length <= letters) return text;
  return letters < 3 ? "" : text.slice(0, letters - 1) + "…";
}

// A flame that is lower than the window stands on its bottom.
function rowTop(depth) {
  const {flame, view, height} = state;
  if (!flame) return depth * ROW - scroller.scrollTop;
  const lift = Math.max(0, height - view.height * ROW);
  return (view.height - 1 - depth) * ROW - scroller.scrollTop + lift;
}
const toPixel = x => (x - state.from) / (state.to - state.from) * state.width;

function drawNode(node, x, width, y) {
  const v = state.view, frame = v.frame[node];
  const dimmed = state.search && node > 0 && !state.search.matches[frame];
  const above = v.depth[node] < v.depth[state.focus];
  ink.globalAlpha = dimmed ? 0.28 : above ? 0.6 : 1;
  const found = state.search && node > 0 && !dimmed;
  ink.fillStyle = found ? (state.dark ? "#f25fd0" : "#e04fbf") : color(frame);
  const gap = width > 3 ? 1 : 0;
  ink.fillRect(x, y, width - gap, ROW - 1);
  if (node === state.selected || node === state.hovered) {
    ink.globalAlpha = 1;
    ink.strokeStyle = state.dark ? "#ffffff" : "#000000";
    ink.lineWidth = node === state.selected ? 2 : 1;
    ink.strokeRect(x + 1, y + 1, Math.max(1, width - gap - 2), ROW - 3);
  }
  if (width < LABEL_MIN) return;
  ink.globalAlpha = dimmed ? 0.6 : 1;
  ink.fillStyle = state.dark && (dimmed || node === 0) ? "#e4e7eb" : "#14171b";
  ink.fillText(label(frame, node, width - 9), x + 4, y + ROW / 2);
}

// Children are sorted by width: at the first that is too narrow, the rest is one strip.
function drawChildren(node, pending) {
  const v = state.view, scale = state.width / (state.to - state.from);
  const y = rowTop(v.depth[node] + 1);
  const end = v.first[node + 1];
  for (let c = v.first[node]; c < end; c++) {
    const child = v.children[c];
    if (v.left[child] >= state.to) return;
    if (v.left[child] + v.total[child] <= state.from) continue;
    if (v.total[child] * scale >= MIN_WIDTH) {
      pending.push(child);
      continue;
    }
    const last = v.children[end - 1];
    drawStrip(toPixel(v.left[child]), toPixel(v.left[last] + v.total[last]), y);
    return;
  }
}

function drawStrip(from, to, y) {
  if (y <= -ROW || y >= state.height) return;
  ink.globalAlpha = 0.5;
  ink.fillStyle = state.dark ? "#4a525c" : "#cfcac2";
  const x = Math.max(0, from);
  ink.fillRect(x, y, Math.max(MIN_WIDTH, Math.min(state.width, to) - x), ROW - 1);
}

function draw() {
  const ratio = window.devicePixelRatio || 1;
  ink.setTransform(ratio, 0, 0, ratio, 0, 0);
  ink.clearRect(0, 0, state.width, state.height);
  if (state.view.total[0] === 0) return;
  ink.font = FONT;
  ink.textBaseline = "middle";
  const pending = [0];
  while (pending.length > 0) {
    const node = pending.pop(), v = state.view;
    const x = Math.max(0, toPixel(v.left[node]));
    const right = Math.min(state.width, toPixel(v.left[node] + v.total[node]));
    const y = rowTop(v.depth[node]);
    if (y > -ROW && y < state.height) drawNode(node, x, right - x, y);
    // Rows only leave the window at one side, so what is beyond it is not visited at all.
    if (state.flame ? y > -ROW : y < state.height) drawChildren(node, pending);
  }
  ink.globalAlpha = 1;
}

let drawing = 0;
function redraw() {
  if (drawing) return;
  drawing = requestAnimationFrame(() => {
    drawing = 0;
    draw();
  });
}

function resize() {
  const ratio = window.devicePixelRatio || 1;
  state.width = scroller.clientWidth;
  state.height = scroller.clientHeight;
  canvas.width = Math.max(1, Math.round(state.width * ratio));
  canvas.height = Math.max(1, Math.round(state.height * ratio));
  canvas.style.width = state.width + "px";
  canvas.style.height = state.height + "px";
  $("spacer").style.height = Math.max(state.height, state.view.height * ROW) + "px";
  draw();
}

// ---- what is looked at --------------------------------------------------------------------------

function show(thread, unit) {
  state.thread = thread;
  state.unit = unit;
  state.native = $("native").checked;
  state.view = recording.view(thread, unit, state.native);
  state.history = [];
  state.selected = state.hovered = -1;
  state.focus = 0;
  state.from = 0;
  state.to = state.view.total[0] || 1;
  $("empty").hidden = state.view.total[0] > 0;
  $("empty").textContent = recording.facts.samples > 0 ? "Nothing in this view." :
    `Nothing was sampled: the program used too little ${recording.facts.mode} time.`;
  search($("search").value);
  resize();
  scroller.scrollTop = state.flame ? scroller.scrollHeight : 0;
  showStatus();
  updateButtons();
}

function updateButtons() {
  $("back").disabled = state.history.length === 0;
  $("reset").disabled = state.focus === 0;
}

function zoomTo(node, remember = true) {
  if (node === state.focus && remember) return;
  if (remember) state.history.push(state.focus);
  state.focus = node;
  state.selected = node > 0 ? node : -1;
  const v = state.view;
  animate(v.left[node], v.left[node] + (v.total[node] || 1));
  reveal(node);
  updateButtons();
  showStatus();
}

function zoomBack() {
  if (state.history.length > 0) zoomTo(state.history.pop(), false);
}

function animate(from, to) {
  cancelAnimationFrame(state.animation);
  const start = performance.now(), from0 = state.from, to0 = state.to;
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
    [state.from, state.to] = [from, to];
    return redraw();
  }
  const step = now => {
    const t = Math.min(1, Math.max(0, (now - start) / ZOOM_MS)), ease = 1 - (1 - t) ** 3;
    state.from = from0 + (from - from0) * ease;
    state.to = to0 + (to - to0) * ease;
    draw();
    if (t < 1) state.animation = requestAnimationFrame(step);
  };
  state.animation = requestAnimationFrame(step);
}

// Scrolls so that the node's row can be seen, with some rows of its callers.
function reveal(node) {
  const y = rowTop(state.view.depth[node]);
  if (y < 2 * ROW) scroller.scrollTop += y - 2 * ROW;
  if (y > state.height - 3 * ROW) scroller.scrollTop += y - state.height + 3 * ROW;
}

function search(text) {
  state.search = null;
  $("search").classList.remove("wrong");
  $("matches").textContent = "";
  if (text !== "") {
    try {
      state.search = searchFrames(recording, text);
      const sum = state.view.matched(state.search.matches);
      $("matches").textContent = `${percent(sum, state.view.total[0])} matched, ` +
        `${number.format(state.search.count)} frame${state.search.count === 1 ? "" : "s"}`;
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      $("search").classList.add("wrong");
      $("matches").textContent = "not a regular expression";
    }
  }
  redraw();
}

function flip(flame) {
  state.flame = flame;
  $("flip").textContent = flame ? "Icicle" : "Flame";
  resize();
  scroller.scrollTop = flame ? scroller.scrollHeight : 0;
  redraw();
}

function setTheme(dark) {
  state.dark = dark;
  document.documentElement.classList.toggle("dark", dark);
  $("theme").textContent = dark ? "Light" : "Dark";
  colors.clear();
  fillLegend();
  redraw();
}

// ---- input --------------------------------------------------------------------------------------

function nodeUnder(event) {
  const box = canvas.getBoundingClientRect(), v = state.view;
  const shift = rowTop(0);
  const y = event.clientY - box.top;
  const depth = state.flame ? Math.floor((shift + ROW - y) / ROW) : Math.floor((y - shift) / ROW);
  const x = state.from + (event.clientX - box.left) / state.width * (state.to - state.from);
  return depth < 0 || v.total[0] === 0 ? -1 : v.nodeAt(depth, x);
}

function hover(event) {
  const node = event ? nodeUnder(event) : -1;
  tooltip(node, event);
  canvas.style.cursor = node >= 0 ? "pointer" : "default";
  if (node === state.hovered) return;
  state.hovered = node;
  showStatus();
  redraw();
}

function select(node) {
  const v = state.view;
  state.selected = node;
  state.hovered = -1;
  $("tooltip").hidden = true;
  // Out of what is zoomed to: look at where it is.
  if (v.left[node] < state.from || v.left[node] + v.total[node] > state.to) {
    if (v.depth[node] > v.depth[state.focus]) zoomTo(node);
  }
  reveal(node);
  showStatus();
  redraw();
}

function move(key) {
  const v = state.view, node = state.selected;
  if (node < 0) return select(state.focus);
  const towardsRoot = key === (state.flame ? "ArrowDown" : "ArrowUp");
  if (key === "ArrowLeft") select(v.sibling(node, -1));
  else if (key === "ArrowRight") select(v.sibling(node, 1));
  else select(towardsRoot ? v.parent[node] : v.widestChild(node));
}

function escape() {
  if ($("search").value !== "") {
    $("search").value = "";
    search("");
  } else {
    zoomTo(0);
    state.history = [];
    updateButtons();
  }
  scroller.focus();
}

const keys = {
  "/": () => { $("search").focus(); $("search").select(); },
  "?": () => $("keys").showModal(),
  Enter: () => { if (state.selected >= 0) zoomTo(state.selected); },
  Backspace: zoomBack, Escape: escape,
  f: () => flip(!state.flame), t: () => setTheme(!state.dark),
  ArrowLeft: () => move("ArrowLeft"), ArrowRight: () => move("ArrowRight"),
  ArrowUp: () => move("ArrowUp"), ArrowDown: () => move("ArrowDown"),
};

function onKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || $("keys").open) return;
  const typing = event.target === $("search");
  if (typing && event.key === "Enter") return scroller.focus();
  if (typing && event.key !== "Escape") return;
  if (event.target === $("native") && event.key === " ") return;
  if (/^(SELECT|BUTTON)$/.test(event.target.tagName) && /^(Enter|Arrow)/.test(event.key)) return;
  const action = keys[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

function listen() {
  canvas.addEventListener("mousemove", hover);
  canvas.addEventListener("mouseleave", () => hover(null));
  canvas.addEventListener("click", event => {
    const node = nodeUnder(event);
    if (node >= 0) zoomTo(node);
  });
  scroller.addEventListener("scroll", () => { hover(null); redraw(); });
  document.addEventListener("keydown", onKey);
  $("search").addEventListener("input", () => search($("search").value));
  $("thread").addEventListener("change", () => show(Number($("thread").value), state.unit));
  $("unit").addEventListener("change", () => show(state.thread, $("unit").value));
  $("native").addEventListener("change", () => show(state.thread, state.unit));
  $("back").addEventListener("click", zoomBack);
  $("reset").addEventListener("click", () => { $("search").value = ""; search(""); escape(); });
  $("flip").addEventListener("click", () => flip(!state.flame));
  $("theme").addEventListener("click", () => setTheme(!state.dark));
  $("help").addEventListener("click", () => $("keys").showModal());
  new ResizeObserver(resize).observe(scroller);
}

// A link may say what to look at:
// #thread=2&unit=time&native=off&search=Json&zoom=Program.Main&view=flame&theme=dark
function start() {
  const wish = new URLSearchParams(location.hash.slice(1));
  const theme = wish.get("theme");
  fillFacts();
  fillThreads();
  setTheme(theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  state.flame = wish.get("view") === "flame";
  const thread = wish.has("thread") ? recording.threads.findIndex(
    t => t.name === wish.get("thread") || String(t.tid) === wish.get("thread")) : ALL_THREADS;
  $("thread").value = thread;
  $("native").checked = wish.get("native") !== "off";
  $("unit").value = wish.get("unit") === "time" ? "time" : "samples";
  $("search").value = wish.get("search") ?? "";
  show(thread, $("unit").value);
  flip(state.flame);
  listen();
  const node = wish.has("zoom") ? state.view.widestNamed(wish.get("zoom")) : 0;
  if (node > 0) zoomTo(node);
}

// The data is base64 of zlib of JSON: a fifth of the JSON's size.
async function load() {
  const text = atob($("data").textContent.trim()), bytes = new Uint8Array(text.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

load().then(data => {
  recording = new Recording(data.modes[0]);
  start();
});
