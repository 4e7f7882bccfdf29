// What the keys, the mouse and the boxes at the top do.

function escape() {
  if ($("first").classList.contains("open")) {
    showGlance(false);
  } else if ($("search").value !== "") {
    $("search").value = "";
    searchChanged();
  } else if (activeChart().focus > 0 && state.view !== "methods") {
    activeChart().wholeGraph();
  } else {
    chooseAll();
  }
  focusView();
}

// Chooses all threads, routes and traces and the whole recording.
function chooseAll() {
  if (!isPart()) return;
  Object.assign(state, {range: null, threads: null, trace: 0, route: readRoute(state.recording, null)});
  fillThreads(state.recording, null);
  refresh();
}

function focusView() {
  if (state.view === "methods") $("methods").focus();
  else activeChart().host.focus();
}

function reset() {
  $("search").value = "";
  searchChanged();
  chooseAll();
  foldAll(true);
  for (const chart of [main, callers, callees]) if (chart.tree) chart.wholeGraph();
  focusView();
}

const moveTo = view => () => { setView(view); focusView(); };
const keys = {
  "/": () => { $("search").focus(); $("search").select(); },
  "?": () => {
    $("keys").showModal();
    $("keys").scrollTop = 0;  // focusing the button at its end scrolls it down
  },
  Enter: () => {
    const chart = activeChart();
    if (chart.selected >= 0) chart.enter(chart.selected);
  },
  Backspace: () => activeChart().back(), Escape: escape, 0: reset,
  f: () => setView(state.view === "flame" ? "icicle" : "flame"),
  t: () => {
    state.theme = look.dark ? "light" : "dark";
    setTheme(!look.dark);
    remember();
  },
  1: moveTo("flame"), 2: moveTo("icicle"), 3: moveTo("sandwich"), 4: moveTo("methods"),
  ".": () => jump(1),
  ",": () => jump(-1),
  s: () => { if (selectedFrame() >= 0) sandwich(selectedFrame()); },
  n: () => toggleKinds(["runtime", "native"]),
  i: () => toggleKinds(["plumbing"]),
  o: () => {
    if (!closeSelected()) foldAll(!state.fold || state.recording.folds.opened.size > 0);
  },
  "[": () => chooseMode(recordings.indexOf(state.recording) - 1),
  "]": () => chooseMode(recordings.indexOf(state.recording) + 1),
  g: toggleGlance,
  h: () => { state.heat = !state.heat; showHeat(); remember(); },
  m: () => { if (!$("heat").hidden) $("heat").focus(); },
  ArrowLeft: () => activeChart().move("ArrowLeft"),
  ArrowRight: () => activeChart().move("ArrowRight"),
  ArrowUp: () => activeChart().move("ArrowUp"),
  ArrowDown: () => activeChart().move("ArrowDown"),
};

function onKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || $("keys").open) return;
  const {target} = event;
  const handled = () => event.preventDefault();
  if (target === $("search")) {
    if (event.key === "Enter") return focusView();
    if (event.key !== "Escape") return;
  }
  if (target === $("heat") && heat.key(event)) return handled();
  if (target === $("methods") && table.key(event)) return handled();
  // A box or a button has a use of its own for these keys.
  if (/^(SELECT|BUTTON|INPUT|SUMMARY)$/.test(target.tagName) &&
      (/^(Enter| |Arrow.*)$/.test(event.key) || (target.tagName === "SELECT" && event.key.length === 1))) return;
  const action = keys[event.key];
  if (!action) return;
  handled();
  action();
}

// Moves the opened panel of a button to the left until the window holds it.
function fitPanel(details) {
  const panel = details.lastElementChild;
  panel.style.setProperty("--left", "0px");
  const over = panel.getBoundingClientRect().right + 16 - document.documentElement.clientWidth;
  panel.style.setProperty("--left", `${-Math.max(0, over)}px`);
}

function fitPanels() {
  for (const id of ["frames", "about", "traces"]) if ($(id).open) fitPanel($(id));
}

// In a narrow window the row of choices scrolls: an arrow says that there are more to the right.
function showScroll() {
  const row = document.querySelector(".choices");
  row.classList.toggle("more", row.scrollLeft + row.clientWidth < row.scrollWidth - 2);
}

function listen() {
  for (const id of ["frames", "about", "traces"]) $(id).addEventListener("toggle", fitPanels);
  window.addEventListener("resize", () => { fitPanels(); showGlance(); });
  new ResizeObserver(showScroll).observe($("search"));
  document.querySelector(".choices").addEventListener("scroll", showScroll);
  const on = (id, type, action) => $(id).addEventListener(type, action);
  document.addEventListener("keydown", onKey);
  on("search", "input", searchChanged);
  on("thread", "change", () => {
    const {value} = $("thread");
    if (value === "several") return;
    state.threads = value === "all" ? null : new Set([Number(value)]);
    fillThreads(state.recording, state.threads);
    refresh();
  });
  for (const id of ["unit", "awake", "width"]) {
    on(id, "change", () => {
      state[id] = $(id).value;
      fillThreads(state.recording, state.threads);
      refresh();
    });
  }
  on("route", "change", () => {
    const {value} = $("route");
    Object.assign(state, {route: /^\d+$/.test(value) ? Number(value) : value, trace: 0});
    fillThreads(state.recording, state.threads);
    refresh();
  });
  on("trace", "click", () => chooseTrace(0));
  on("idle", "click", () => {
    state.idle = !state.idle;
    fillThreads(state.recording, state.threads);
    refresh();
  });
  on("mode", "change", () => chooseMode(Number($("mode").value)));
  for (const view of VIEWS) on(`view-${view}`, "click", moveTo(view));
  on("back", "click", () => activeChart().back());
  on("reset", "click", reset);
  on("range", "click", () => { state.range = null; refresh(); });
  on("heat-toggle", "click", keys.h);
  on("theme", "click", keys.t);
  on("hit-next", "click", keys["."]);
  on("hit-before", "click", keys[","]);
  on("help", "click", keys["?"]);
  on("glance-more", "click", toggleGlance);
  window.addEventListener("hashchange", () => follow(location.hash));
}
