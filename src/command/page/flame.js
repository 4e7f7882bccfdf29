// The page: what is looked at (`state`), the parts that show it, and how they work together.

const look = new Look();
let recordings = [];    // one for each mode
let marks = [];         // on the timeline: [begin, duration, text] in us
const REST_MIN = 120;   // pixels that the table needs below a chart
const state = {
  recording: null, view: "icicle", threads: null, unit: USUAL_UNIT, hide: new Set(), awake: "all", idle: false, fold: true,
  route: "all", trace: 0, range: null, width: "after", tree: null, heat: true, theme: null,
};

function frameName(tree, node) {
  const {recording: rec} = tree, {route, trace, threads} = state;
  if (node > 0) return rec.names[tree.frame[node]];
  const chosen = [trace ? `trace ${rec.traces[trace - 1][1]}` : "", typeof route === "number" ?
    routeText(rec, route).replace(/^none$/, "no route") : ""].filter(text => text !== "").join(", ");
  if (chosen) return chosen + (threads ? `, ${countText(threads.size, ["thread", "threads"])}` : "");
  if (!state.threads) return "all threads";
  if (state.threads.size !== 1) return `${state.threads.size} threads`;
  return threadName(tree.recording.threads[[...state.threads][0]]);
}

// A width in words: samples, or what they stand for.
function amount(value) {
  const {unit, recording: rec} = state;
  if (unit === "samples") return countText(value, rec.what);
  return rec.unit === "count" ? countText(value, rec.counted) : weightText(value, rec.unit);
}

// Adds the number of samples in brackets, if that says more.
function amountText(value, samples) {
  const {unit, recording: rec} = state, counts = rec.unit === "count";
  if (samples === undefined || unit === "samples" || (counts && samples === value)) return amount(value);
  return `${amount(value)} (${countText(samples, counts ? ["sample", "samples"] : rec.what)})`;
}

// In a comparison, by how much of the whole a box has grown or shrunk; "" if by nothing that is shown.
function changeText(tree, node) {
  if (!tree.before || node === 0) return "";
  const {of} = tree;
  const text = signedPoints(tree.after[node] - tree.before[node], of.whole);
  return text === signedPoints(0, 1) ? "" : text;
}

// What shares are shares of.
const wholeName = (selection = isSelection()) => (selection ? "the selection’s " : "") +
  (state.unit === "samples" ? state.recording.what[1] : state.recording.whole) +
  (state.recording.idle && !state.idle ? " without idle" : "");

function describe(tree, node) {
  const {of} = tree, name = of === tree || node > 0 ? frameName(tree, node) :
    state.recording.names[state.recording.method];
  const own = of === tree ? ` · self ${percent(tree.self[node], of.whole)}` : "";
  const change = tree.before ? ` · ${signedPoints(tree.after[node] - tree.before[node],
    of.whole)} against before` : "";
  return `${name} · ${amountText(tree.total[node], tree.samples?.[node])} · ` +
    `${percent(tree.total[node], of.whole)} of ${wholeName()}${own}${change}`;
}

const say = text => { $("status").textContent = text; };

function showStatus(node = -1, chart = activeChart()) {
  if (!chart.tree) return say("");
  const shown = [node, chart.selected, chart.focus].find(candidate => candidate >= 0);
  say(describe(chart.tree, shown));
}

// ---- the parts ----------------------------------------------------------------------------------

function chartFor(id) {
  const chart = new Chart($(id), look, {
    select: node => showStatus(node, chart),
    hover: (node, event) => {
      tooltip(chart, node, event);
      showStatus(node, chart);
    },
    unfold: node => unfold(chart, node),
    resized: showRest,
    zoomed: () => {
      updateButtons();
      showStatus(-1, chart);
      remember();
    },
  });
  chart.host.addEventListener("focusin", () => { lastChart = chart; });
  chart.canvas.addEventListener("dblclick", () => {
    const node = chart.clicked;  // the first click may have moved everything
    if (node > 0 && !chart.opening && !chart.tree.isFolded(node)) sandwich(chart.tree.frame[node]);
  });
  return chart;
}

let main, callers, callees, table, heat, lastChart;

function makeParts() {
  main = chartFor("scroller");
  callers = chartFor("callers");
  callees = chartFor("callees");
  lastChart = main;
  table = new MethodTable($("methods"), {open: sandwich, sorted: remember,
    select: frame => {
      const row = table.rows[table.active];
      const [self, total] = state.tree.before ? [amount(row.self), amount(row.total)] :
        [amountText(row.self, row.selfSamples), amountText(row.total, row.totalSamples)];
      say(`${state.recording.names[frame]} · self ${self} · total ${total}`);
    }});
  heat = new Heat($("heat"), look, {say, left: showUsualStatus, chosen: (range, threads) => {
    state.range = range;
    state.threads = threads;
    fillThreads(state.recording, threads);
    refresh();
  }});
  look.rootLabel = tree => `${frameName(tree, 0)} · ${amountText(tree.total[0], tree.samples?.[0])}`;
}

function activeChart() {
  if (state.view !== "sandwich") return main;
  return lastChart === callers ? callers : callees;
}

// ---- what is looked at --------------------------------------------------------------------------

function treeOf(hide, fold = false) {
  const {recording: rec, threads, unit, range, awake, idle, route, trace, width} = state;
  return rec.tree({threads, unit, range, awake, idle, route, trace, hide, fold: fold && rec.folds.any, width});
}

// The tree with all frames, which everything but the flame graph shows.
const plainTree = () => treeOf(state.hide);

// Shows everything anew, from `state`.
function refresh() {
  const {recording: rec, range, trace} = state;
  rec.group(state.route === "each");
  state.tree = treeOf(state.hide, state.fold);
  fillIdle(rec, state);
  fillRoutes(rec, state);
  fillTraces(rec, trace, chooseTrace);
  $("trace").hidden = !trace;
  if (trace) $("trace").textContent = `${rec.traces[trace - 1][1].slice(0, 8)}…  ✕`;
  fillGlance(rec, plainTree(), openMethod);
  $("empty").hidden = state.tree.total[0] > 0 || state.view === "methods";
  $("empty").textContent = emptyText(rec, state.tree);
  $("range").hidden = !range;
  if (range) $("range").textContent = `${timeText(range[0], 1)} – ${timeText(range[1], 1)}  ✕`;
  tooltip(null, -1, null);
  for (const chart of [main, callers, callees]) chart.use(chart === main ? state.tree : null);
  search($("search").value);
  table.stale = true;
  showView();
}

function showView() {
  const {view, tree} = state;
  for (const name of VIEWS) $(`view-${name}`).setAttribute("aria-pressed", String(name === view));
  $("scroller").hidden = view !== "flame" && view !== "icicle";
  $("sandwich").hidden = view !== "sandwich";
  showUnseen();
  showHits();
  if (!$("scroller").hidden) main.show(tree, {upward: view === "flame"});
  if (view === "sandwich") showSandwich();
  showRest();
  updateButtons();
  showUsualStatus();
  remember();
}

// The table of methods is a view of its own, and fills what short stacks leave of the other ones. Where only
// thin towers would not fit above it, they scroll.
function showRest() {
  const {view, tree} = state, charts = view === "sandwich" ? [callers, callees] : view === "methods" ? [] : [main];
  if (!tree || charts.some(chart => !chart.tree)) return;
  const room = $("methods").parentNode.clientHeight - (view === "sandwich" ? $("pick").parentNode.offsetHeight : 0);
  const fits = of => room - charts.reduce((sum, chart) => sum + chart[of], 0) >= REST_MIN;
  const hidden = charts.length > 0 && (tree.total[0] === 0 || !fits("full")), whole = hidden || fits("content");
  for (const chart of charts) chart.host.style.maxHeight = whole ? "" : `${chart.full}px`;
  $("methods").hidden = hidden;
  if (!hidden && (table.stale || table.tree !== plainTree())) table.show(plainTree());
}

function showUsualStatus() {
  if (state.view !== "methods") showStatus();
  else say(`${number.format(table.rows.length)} methods · shares of ${wholeName()}`);
}

function showSandwich() {
  const {recording: rec} = state, tree = plainTree();
  if (rec.method < 0) rec.method = hottest(tree);
  const pair = rec.method >= 0 ? tree.sandwich(rec.method) : {callers: null, callees: null};
  callers.show(pair.callers, {upward: true, skip: 1});
  callees.show(pair.callees, {upward: false, skip: 1});
  $("pick").textContent = rec.method >= 0 ? rec.names[rec.method] : "no method";
  const total = pair.callees?.total[0];
  $("pick-share").textContent = !pair.callees ? "" :
    `${amountText(total, pair.callees.samples?.[0])} · ${percent(total, tree.whole)} of ${wholeName()}`;
}

// The frame with the most of its own among the program's code; among all frames if that code has
// nothing of its own, as with allocations, which belong to their types.
function hottest(tree) {
  const {recording: rec} = tree, all = tree.methods();
  const own = all.filter(row => row.self > 0 && rec.kinds[rec.frameKinds[row.frame]][0] === "user");
  const rows = own.length > 0 ? own : all;
  return rows.reduce((best, row) => row.self > (best ? best.self : -1) ? row : best, null)?.frame ?? -1;
}

function sandwich(frame) {
  state.recording.method = frame;
  setView("sandwich");
  callees.host.focus();
}

// Shows a method of any of the recordings.
function openMethod(recording, frame) {
  if (recording !== state.recording) chooseMode(recordings.indexOf(recording));
  sandwich(frame);
}

function setView(view) {
  state.view = view;
  tooltip(null, -1, null);
  showView();
}

function selectedFrame() {
  if (state.view === "methods" || document.activeElement === $("methods")) return table.rows[table.active]?.frame ?? -1;
  const chart = activeChart();
  const node = chart.selected > 0 ? chart.selected : chart.focus;
  return node > 0 && !chart.tree.isFolded(node) ? chart.tree.frame[node] : -1;
}

// Whether only a part of the recording is looked at.
const isPart = () => Boolean(state.range || state.threads || state.trace) || typeof state.route === "number";
const isSelection = () => isPart() || state.recording.skipped(state.awake) >= 0;

function chooseTrace(number) {
  Object.assign(state, {trace: number, range: null, threads: null,
    route: readRoute(state.recording, null)});
  fillThreads(state.recording, null);
  refresh();
}

function updateButtons() {
  const chart = activeChart();
  $("back").disabled = state.view === "methods" || chart.history.length === 0;
  $("reset").disabled = chart.focus === 0 && !isPart() && !state.recording.found;
}

function search(text) {
  $("search").classList.remove("wrong");
  $("matches").textContent = "";
  try {
    state.recording.search(text);
    const {recording: {found}} = state;
    if (found) {
      $("matches").title = $("matches").textContent = foundText(plainTree(), found);
      found.inlined = inlinedText(treeOf(new Set()), found);
    }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    $("search").classList.add("wrong");
    $("matches").textContent = "not a regular expression";
  }
  showElsewhere(recordings, state.recording, text, chooseMode);
  showUnseen();
  showHeat();
}

// Without --inlined, an inlined method has no frame of its own, so every figure for it is too small.
function showUnseen() {
  const {recording: rec, view} = state, asked = rec.found || view === "sandwich" || view === "methods";
  const all = [rec.facts, rec.diff?.facts].every(facts => !facts || facts.inlined);
  $("unseen").hidden = !asked;
  $("unseen").textContent = (rec.found?.inlined ?? "") + (all ?
    "Not seen: what is inlined into precompiled code, or has no statement of its own left." :
    "A method is not seen where it was inlined: its time there is its caller’s, so it may have " +
    "more than is shown. To see it, record with --inlined.");
}

const foundText = (tree, {matches, count}) =>
  `${percent(tree.matched(matches), tree.whole)} of ${wholeName()} matched, ` +
    `${number.format(count)} frame${count === 1 ? "" : "s"}`;

function searchChanged() {
  search($("search").value);
  table.stale = true;
  showRest();
  for (const chart of [main, callers, callees]) chart.redraw();
  showHits();
  updateButtons();
  remember();
}

// The boxes of the flame graph that the search has found, and which of them was jumped to.
function showHits() {
  const {recording: {found}, tree} = state, shown = found && !$("scroller").hidden;
  const count = shown ? tree.outermostHits(found).length : 0;
  $("hits").hidden = count === 0;
  if (shown && found.at >= count) found.at = -1;
  $("hit-next").textContent = `${shown && found.at >= 0 ? `${number.format(found.at + 1)} of ` : ""}${number.format(count)} ›`;
  $("hit-next").setAttribute("aria-label", `The next of ${countText(count, ["hit", "hits"])}`);
}

// Goes to another hit: zooms to it if it is narrow, and opens it if it is folded.
function jump(step) {
  const {recording: {found}} = state;
  if (!found || $("scroller").hidden) return;
  const hits = state.tree.outermostHits(found);
  if (hits.length === 0) return;
  found.at = found.at < 0 ? (step > 0 ? 0 : hits.length - 1) : (found.at + step + hits.length) % hits.length;
  const node = hits[found.at];
  if (main.tree.total[node] / (main.to - main.from) * main.width < LABEL_MIN) main.zoomTo(node);
  main.select(node);
  showHits();
}

function showHeat() {
  const shown = state.heat && state.recording.timed;
  $("heat").hidden = !shown;
  $("heat-toggle").hidden = !state.recording.timed;
  $("heat-toggle").setAttribute("aria-pressed", String(state.heat));
  if (!shown) return;
  heat.range = state.range;
  heat.threads = state.threads;
  heat.show(state.recording, marks, state);
}

function setTheme(dark) {
  look.dark = dark;
  document.documentElement.classList.toggle("dark", dark);
  $("theme").textContent = dark ? "Light" : "Dark";
  fillLegend(state.recording, look);
  for (const chart of [main, callers, callees]) chart.redraw();
  heat.draw();
}

function setRecording(recording) {
  recording.open();
  recording.group(state.route === "each");
  state.recording = recording;
  state.tree = null;
  fillFacts(recording);
  fillThreads(recording, state.threads);
  fillLegend(recording, look);
  fillFolds(recording, state.hide, fold);
  $("mode").value = recordings.indexOf(recording);
  $("unit").options[0].text = recording.what[1].split(" ").pop();  // "sampled objects" is too wide
  $("unit").options[1].text = weightLabel(recording.unit);
  $("unit").value = state.unit;
  $("unit-field").hidden = recording.unit === "count";
  $("awake-field").hidden = !recording.asleep;
  $("width-field").hidden = !recording.diff;
}

// Whatever was chosen in the previous mode stays chosen, as far as it makes sense in this one.
function chooseMode(index) {
  const recording = recordings[(index + recordings.length) % recordings.length];
  const {method, names, traces} = state.recording, id = state.trace && traces[state.trace - 1][1];
  Object.assign(state, {route: readRoute(recording, routeText(state.recording, state.route)),
    trace: id ? 1 + (recording.traces ?? []).findIndex(trace => trace[1] === id) : 0});
  Object.assign(state, {threads: null, range: recording.timed ? state.range : null, unit: USUAL_UNIT});
  setRecording(recording);
  if (state.view === "sandwich") recording.method = recording.names.indexOf(names[method]);
  refresh();
}

function fold(kind, hidden) {
  if (hidden) state.hide.add(kind);
  else state.hide.delete(kind);
  refresh();
}

// Shows other boxes folded, and selects the frame of that node of the recording.
function refold(node = 0) {
  state.tree = treeOf(state.hide, state.fold);
  tooltip(null, -1, null);
  main.replace(state.tree, node);
  fillFolds(state.recording, state.hide, fold);
  fillLegend(state.recording, look);
  showHits();
  updateButtons();
  showUsualStatus();
  remember();
}

function unfold(chart, node) {
  const {folds} = state.recording, inside = folds.inside(chart.tree, node);
  folds.open(inside);
  refold(inside[0]);
}

// Folds the run of frames that the selected one is in, if it was opened.
function closeSelected() {
  const {recording: {folds}, tree} = state, node = state.view === "sandwich" ? -1 : main.selected;
  if (!state.fold || node <= 0) return false;
  const inside = folds.inside(tree, node);
  if (inside.filter(i => folds.close(i)).length === 0) return false;
  refold(inside[0]);
  return true;
}

function foldAll(folded) {
  const {opened} = state.recording.folds;
  if (state.fold === folded && opened.size === 0) return;
  state.fold = folded;
  opened.clear();
  refold();
}

// Hides frames of these kinds if any of them are shown; otherwise shows them again.
function toggleKinds(kinds) {
  const shown = kinds.some(kind => !state.hide.has(kind));
  kinds.forEach(kind => shown ? state.hide.add(kind) : state.hide.delete(kind));
  fillFolds(state.recording, state.hide, fold);
  refresh();
}

// ---- start, and the link ------------------------------------------------------------------------

function remember() {
  const {recording: rec} = state;
  const link = writeLink({...state, mode: rec.facts.mode, firstMode: recordings[0].facts.mode,
    open: [...rec.folds.opened], threads: state.threads && [...state.threads].map(i => rec.threads[i].tid || rec.threads[i].name),
    route: routeText(rec, state.route), usualRoute: rec.usualRoute, trace: state.trace ? rec.traces[state.trace - 1][1] : null,
    search: $("search").value, node: state.view === "sandwich" ? 0 : main.focus,
    method: state.view === "sandwich" && rec.method >= 0 ? rec.names[rec.method] : null,
    sort: table.order});
  if (link === location.hash.slice(1)) return;
  history.replaceState(null, "", "#" + link);
}

function follow(hash) {
  const wish = readLink(hash);
  const recording = recordings.find(rec => rec.facts.mode === wish.mode) ?? recordings[0];
  recording.open();
  Object.assign(state, {view: wish.view, unit: wish.unit ?? USUAL_UNIT,
    hide: wish.hide, awake: wish.awake, idle: wish.idle, fold: wish.fold, route: readRoute(recording, wish.route),
    trace: 1 + (recording.traces ?? []).findIndex(trace => trace[1] === wish.trace),
    range: recording.timed ? wish.range : null, width: wish.width, heat: wish.heat,
    theme: wish.theme});
  const threads = new Set(recording.threads.flatMap((thread, i) =>
    wish.threads.includes(thread.name) || wish.threads.includes(String(thread.tid)) ? [i] : []));
  state.threads = threads.size > 0 ? threads : null;
  setRecording(recording);
  setTheme(wish.theme ? wish.theme === "dark" :
    matchMedia("(prefers-color-scheme: dark)").matches);
  $("awake").value = state.awake;
  $("width").value = state.width;
  $("search").value = wish.search;
  recording.folds.opened = new Set(wish.open);
  recording.method = wish.method ? recording.names.indexOf(wish.method) : -1;
  table.order = wish.sort;
  refresh();
  const node = wish.zoom ? widestNamed(wish.zoom) : wish.node;
  if (node > 0 && node < state.tree.count) main.zoomTo(node);
}

// The widest node of the frame with that name, out of its folded box if it is in one.
function widestNamed(name) {
  const {recording: {folds, parent}} = state, plain = plainTree(), node = plain.widestNamed(name);
  for (let i = 1; i < parent.length && node > 0; i++) {
    if (plain.at(i) !== node) continue;
    if (state.tree.isFolded(state.tree.at(i))) {
      folds.open([i]);
      refold();
    }
    return state.tree.at(i);
  }
  return 0;
}

function start(data) {
  recordings = data.modes.map(mode => new Recording(mode, data.bytes, data.odd, data.pool));
  marks = data.marks ?? [];
  makeParts();
  recordings.forEach((rec, i) => $("mode").append(
    new Option(rec.facts.mode + (rec.only ? ` (only ${rec.only})` : ""), i)));
  $("mode-field").hidden = recordings.length === 1;
  follow(location.hash);
  listen();
  document.documentElement.dataset.ready = "yes";
  performance.mark("ready");
}

unpack($("data").textContent).then(start, error => {
  $("empty").hidden = false;
  $("empty").textContent = typeof DecompressionStream === "undefined" ?
    "This browser is too old for the page: it needs Chromium 80, Firefox 113 or Safari 16.4." :
    `The page's data cannot be read: ${error.message}`;
});
