// What a reader wants to know first, a line each above the graph: the program's own hottest methods,
// how busy it was, what it waited for longest, and what makes the recording less reliable.

const GLANCE_MOST = 3;  // methods in a line
// What comes first; before all of it, a pool that was starved.
const GLANCE_ORDER = ["Hottest own code", "Longest waits", "Waits for locks", "Note", "Pauses held up", "CPU", "Runtime's own code",
  "Thread pool"];

// Per frame: the first frame of the same method. With source lines, a method has several frames.
function methodGroups(rec) {
  if (rec.groups) return rec.groups;
  const first = new Map();
  return rec.groups = rec.names.map((name, i) => {
    const key = `${methodOf(name)}\n${rec.modules[i]}`;
    if (!first.has(key)) first.set(key, i);
    return first.get(key);
  });
}

// Sums of weights by method and a text.
class Groups {
  constructor(rec) {
    this.of = methodGroups(rec);
    this.sums = new Map();
  }

  add(frame, weight, what = "") {
    const group = this.of[frame], key = what === "" ? group : `${group}\n${what}`;
    if (!this.sums.has(key)) this.sums.set(key, {group, what, weight: 0, frames: new Map()});
    const sum = this.sums.get(key);
    sum.weight += weight;
    sum.frames.set(frame, (sum.frames.get(frame) ?? 0) + weight);
  }

  // {group, what, weight, frame: the method's frame with the most, its weight `most`}, the largest weight first.
  list() {
    return [...this.sums.values()].filter(sum => sum.weight > 0)
      .map(sum => ({sum, top: [...sum.frames].reduce((a, b) => b[1] > a[1] ? b : a)}))
      .map(({sum, top: [frame, most]}) => ({...sum, frame, most}))
      .sort((a, b) => b.weight - a.weight || a.group - b.group);
  }
}

// For each method of the program's own code: what the tree has in it and in what it calls that is not
// own code (`weight`), in itself, and with all that it calls.
function ownCode(tree) {
  const {recording: rec} = tree, own = rec.kinds.findIndex(([kind]) => kind === "user"), here = new Groups(rec);
  const nearest = new Int32Array(tree.count).fill(-1), isOwn = rec.frameKinds.map(kind => kind === own);
  const self = new Map(), total = new Map(), flags = tree.outermostBy(here.of);
  const add = (sums, frame, weight) => sums.set(here.of[frame], (sums.get(here.of[frame]) ?? 0) + weight);
  for (let i = 1; i < tree.count; i++) {
    const frame = tree.frame[i];
    nearest[i] = isOwn[frame] ? frame : nearest[tree.parent[i]];
    if (nearest[i] >= 0 && tree.self[i] > 0) here.add(nearest[i], tree.self[i]);
    if (!isOwn[frame]) continue;
    add(self, frame, tree.self[i]);
    if (flags[i]) add(total, frame, tree.total[i]);
  }
  return here.list().map(row => ({...row, self: self.get(row.group), total: total.get(row.group)}));
}

// Per node of the recording's tree: the nearest frame of the program's own code, or -1.
function nearestOwn(rec) {
  const own = rec.kinds.findIndex(([kind]) => kind === "user"), place = new Int32Array(rec.parent.length).fill(-1);
  for (let i = 1; i < place.length; i++) {
    place[i] = rec.frameKinds[rec.frame[i]] === own ? rec.frame[i] : place[rec.parent[i]];
  }
  return place;
}

// In gc mode: how long suspensions waited for threads that were in a method of the program's own code,
// the longest first: see Groups.
function longestBlockers(rec) {
  const sums = new Groups(rec), place = nearestOwn(rec);
  rec.entryNode.forEach((node, i) => {
    if (place[node] >= 0 && rec.names[rec.frame[node]].startsWith("[holds up ")) sums.add(place[node], rec.entryOwn.weight[i]);
  });
  return sums.list();
}

// In holders mode: for how long threads waited for locks that were held in a method of the program's own
// code, the longest first: see Groups.
function longestHolders(rec) {
  const sums = new Groups(rec), place = nearestOwn(rec);
  rec.entryNode.forEach((node, i) => {
    if (place[node] >= 0 && rec.names[rec.frame[node]].startsWith("[holds ")) sums.add(place[node], rec.entryOwn.weight[i]);
  });
  return sums.list();
}

// Waits in a mode of waits, or the time asleep in wall mode, by what is waited for and by the nearest
// method of the program's own code, the longest first: see Groups.
function longestWaits(rec) {
  const sums = new Groups(rec), place = nearestOwn(rec);
  const locks = recordings.some(other => other.facts.mode === "lock");  // wait mode has some of the waits for them, too
  const add = (node, weight) => {
    const what = rec.facts.mode === "wall" ? "waiting" : rec.names[rec.frame[node]];
    if (locks && rec.facts.mode === "wait" && what === "Monitor.Enter") return;
    if (what.startsWith("[idle") || rec.idle?.[node] || place[node] < 0) return;
    sums.add(place[node], weight, what);
  };
  if (rec.facts.mode !== "wall") rec.entryNode.forEach((node, i) => add(node, rec.entryOwn.weight[i]));
  else rec.entry.forEach((entry, i) => { if (rec.asleep?.[i]) add(rec.entryNode[entry], rec.sampleWeight[i]); });
  return sums.list();
}

// "; hottest line Cart.cs:12", or "" without lines.
const lineOf = (rec, frame) => / \(([^()]*:\d+)\)(?: \(inlined\))?$/.exec(rec.names[frame])?.[1];
function lineText(rec, frame) {
  const line = lineOf(rec, frame);
  return line ? `; hottest line ${line}` : "";
}

// open(recording, frame) shows a method.
function fillGlance(recording, tree, open) {
  const line = (label, parts, mood = "") => {
    const item = document.createElement("li"), name = document.createElement("b");
    name.textContent = label;
    item.append(name, " ", ...parts);
    item.className = mood;
    return item;
  };
  const method = (rec, frame, name = rec.names[frame]) => {
    const button = document.createElement("button"), forms = shortNames(name);
    button.textContent = forms[Math.min(1, forms.length - 1)];
    button.title = `${rec.names[frame]}: its callers and callees`;
    button.addEventListener("click", () => open(rec, frame));
    return button;
  };
  // A method with the line that its whole sum is of, or the one with the most.
  const placed = ({rec, frame, frames, most, weight}) => {
    const ofLine = lineOf(rec, frame);
    if (!ofLine || frames.size === 1) return [method(rec, frame)];
    return [method(rec, frame, methodOf(rec.names[frame])), ` (${2 * most > weight ? "mostly" : "hottest"} line ${ofLine})`];
  };
  const lines = [], {facts: f, diff} = recording, all = isSelection() ? " (whole recording):" : ":";
  const hot = ownCode(tree).slice(0, GLANCE_MOST);
  if (hot.length > 0) {
    lines.push(line("Hottest own code:", hot.flatMap((row, i) => [i > 0 ? " · " : "", 
      method(recording, row.frame, methodOf(recording.names[row.frame])),
      ` ${amount(row.weight)} (self ${amount(row.self)}, total ${amount(row.total)}${lineText(recording, row.frame)})`])));
    lines[0].title = "In the method itself and in what it calls that is not your own code; self: in the method alone; " +
      "total: with all that it calls";
  }
  if (!diff && f.mode === "cpu" && f.unit === "nanoseconds" && f.durationMs > 0) {
    lines.push(line(`CPU${all}`, [`${weightText(f.weight, f.unit)} in ${(f.durationMs / 1000).toFixed(1)} s: ` +
      `${(f.weight / 1e6 / f.durationMs).toFixed(2)}${f.processors ? ` of ${f.processors}` : ""} processors busy on average`]));
  }
  if (!diff && f.mode === "cpu" && f.runtimeWeight > 0) {
    lines.push(line(`Runtime's own code without names${all}`, [`${percent(f.runtimeWeight, f.weight)} of ${f.whole}; ` +
      `${percent(f.unclassedWeight, f.weight)} without a class either`]));
    lines.at(-1).title = "Functions of the runtime that have no names are shown by what they do, [GC] or [JIT]; " +
      "--symbols microsoft fetches their names";
  }
  const longest = (sumsOf, modes) => recordings.filter(rec => !rec.diff && modes.includes(rec.facts.mode)).flatMap(rec => {
    rec.open();
    return sumsOf(rec).map(sum => ({...sum, rec}));
  }).sort((a, b) => b.weight - a.weight).slice(0, GLANCE_MOST);
  const waits = longest(longestWaits, ["wait", "lock"]), shown = waits.length > 0 ? waits : longest(longestWaits, ["wall"]);
  if (shown.length > 0) {
    lines.push(line(`Longest waits${all}`, shown.flatMap((sum, i) =>
      [i > 0 ? " · " : "", ...placed(sum), ` ${weightText(sum.weight, sum.rec.unit)}`,
        ...(sum.what === "waiting" ? [] : [` for ${sum.what}`])])));
  }
  const holders = longest(longestHolders, ["holders"]);
  if (holders.length > 0) {
    const {rec} = holders[0], whole = rec.entryOwn.weight.reduce((a, b) => a + b, 0);
    lines.push(line(`Waits for locks${all}`, [`${weightText(whole, rec.unit)}, held by `, ...holders.filter(({weight}, i) => i === 0 || weight >= whole / 20).flatMap(({frame, weight}, i) =>
      [i > 0 ? " · " : "", method(rec, frame), ` ${percent(weight, whole)}`])]));
  }
  const blockers = longest(longestBlockers, ["gc"]);
  if (blockers.length > 0) {
    lines.push(line(`Pauses held up${all}`, blockers.flatMap((sum, i) =>
      [i > 0 ? " · " : "", ...placed(sum), ` ${weightText(sum.weight, sum.rec.unit)}`])));
  }
  if (recording.pool !== "") lines.push(line("Thread pool:", [recording.pool], recording.pool.includes("not starved in") ? "" : "odd"));
  // What is said of one mode begins with the mode's name.
  const modes = new Set(recordings.map(rec => `${rec.facts.mode}:`));
  const odd = recording.odd.filter(text => !modes.has(text.split(" ")[0]) || text.startsWith(`${f.mode}:`));
  if (odd.length > 0) lines.push(line("Note:", [odd.join(" ")], "odd"));
  const rank = item => item.className === "odd" && item.textContent.startsWith("Thread pool") ? -1 :
    GLANCE_ORDER.findIndex(label => item.textContent.startsWith(label));
  $("glance").replaceChildren(...lines.sort((a, b) => rank(a) - rank(b)));
  $("first").hidden = lines.length === 0;
  showGlance(false);
}

// The first lines, one row each, or, open, all of them in full over the graph.
function showGlance(open = $("first").classList.contains("open")) {
  const first = $("first"), lines = [...$("glance").children], rest = lines.slice(innerHeight > 700 && innerWidth > 700 ? 4 : 3);  // as in flame.css
  if (first.hidden) return;
  first.style.height = open && !first.classList.contains("open") ? `${first.getBoundingClientRect().height}px` : open ? first.style.height : "";
  first.classList.toggle("open", open);
  $("glance-more").textContent = open ? "Fewer" : rest.length > 0 ? `${rest.length} more` : "In full";
  $("glance-more").setAttribute("aria-expanded", String(open));
  $("glance-more").classList.toggle("odd", !open && rest.some(item => item.className === "odd"));
}
const toggleGlance = () => showGlance(!$("first").classList.contains("open"));

// Where else a search that has found nothing in this mode finds something: choose(index) shows that mode.
function showElsewhere(all, recording, text, choose) {
  const note = $("elsewhere");
  note.hidden = recording.found?.count !== 0 || all.length < 2;
  if (note.hidden) return;
  const hits = all.map((rec, i) => {
    if (rec !== recording) rec.open();
    return {i, rec, count: rec === recording ? 0 : searchFrames(rec, text).count};
  }).filter(({count}) => count > 0);
  const parts = hits.flatMap(({i, rec, count}, at) => {
    const button = document.createElement("button");
    button.textContent = `${rec.facts.mode} mode`;
    button.addEventListener("click", () => choose(i));
    return [at > 0 ? ", " : "", button, ` (${countText(count, ["frame", "frames"])})`];
  });
  note.replaceChildren(`Nothing in ${recording.facts.mode} mode matches. `,
    ...(hits.length > 0 ? ["There are hits in ", ...parts, "."] : ["Nor does anything in another mode."]));
}
