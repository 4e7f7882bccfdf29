// The recording's data as the page has it: flat arrays. A node is a path from the root; an entry is
// the cost that one thread has in a node itself; a sample belongs to an entry. Nothing here knows
// the document. What is looked at is a Tree (flame-tree.js), which a filter makes from this data.

// The thread of what was counted and not walked. Except for holders, its samples are made at the recording's end and stand
// for all of it.
const UNWALKED = "[stacks that were not walked]";

// One mode of a recording ("cpu", "wall", ...), with a unit of its own. Frames, threads and nodes
// are numbers that have a meaning in their mode only, so whatever is kept under such a number is
// kept here (or in a Tree, which knows its Recording) and cannot be mistaken for another mode's.
class Recording {
  // data: the mode's head. The mode's columns are in `bytes`, and are not read before open().
  // odd: sentences on what makes the recording less reliable; pool: one on the thread pool.
  constructor(data, bytes, odd = [], pool = "") {
    this.data = data;
    this.odd = odd;
    this.pool = pool;
    this.bytes = bytes;
    this.facts = data.facts;
    this.kinds = data.kinds;
    this.unit = data.facts.unit === "nanoseconds" ? "us" : data.facts.unit;  // of `weight`
    // What a sample is, singular and plural. A pause has two.
    this.what = data.facts.mode === "gc" ? ["sample", "samples"] : data.facts.what;
    this.whole = data.facts.whole;  // the whole that weights are parts of, such as "CPU time"
    this.counted = countsMore(data.facts) ? [this.whole, this.whole] : this.what;  // what is counted
    this.threads = data.threads.map(([name, tid]) => ({name: data.strings[name], tid}));
    this.timeless = this.threads.map(({name}) => name === UNWALKED && data.facts.mode !== "holders");  // per thread: when is not known
    this.routes = data.routes?.length > 0 ? data.routes : null;  // numbered from 1
    this.traces = data.traces?.length > 0 ? data.traces : null;  // [route, id, first ms, ms, samples, weight], from 1
    this.grouped = false;  // by route
    this.usualRoute = this.routes && data.byRoute ? "each" : "all";
    this.diff = data.diff ?? null;
    this.tenthsOff = data.tenthsOff ?? null;  // of a point, by which a share of the whole may be off; null: not sampled, or not known
    this.only = data.only ?? null;  // in a comparison: "before" or "after" if only that side has the mode
    this.timed = data.samples > 0;
    this.trees = new Map();
    this.forms = [];  // per frame: {text, width} of its name and of shorter forms
    this.colors = {light: [], dark: []};  // per frame
    this.found = null;  // the search's result: {matches: per frame, count, at: the hit that was jumped to}
    this.method = -1;  // the frame that the sandwich shows
  }

  open() {
    if (!this.data) return;
    const {data} = this, columns = new Columns(this.bytes, data.at);
    this.readFrames(data);
    this.readNodes(data, columns);
    this.readEntries(data, columns);
    this.readSamples(data, columns);
    this.readIdle(data, columns);
    this.data = this.bytes = null;
  }

  readFrames({frames, strings, inlining = []}) {
    this.frameCount = frames.length / 3;
    const column = (offset, of) => Array.from({length: this.frameCount}, (_, i) =>
      of ? of[frames[3 * i + offset]] : frames[3 * i + offset]);
    this.names = column(0, strings);
    this.modules = column(1, strings);
    this.frameKinds = column(2);
    this.plumbing = this.names.map(isPlumbing);
    // A folded box has a frame of its own after those of the recording.
    for (const [, label] of FOLDS) {
      this.names.push(`▸ ${label}`);
      this.modules.push("");
      this.frameKinds.push(-1);
    }
    this.inlining = [];  // [method, the method that it was inlined into], with and without samples
    for (let i = 0; i < inlining.length; i += 2) this.inlining.push([strings[inlining[i]], strings[inlining[i + 1]]]);
  }

  // Node 0 is the root. Nodes are in depth-first order, so a parent comes before its children.
  readNodes({nodes}, columns) {
    const parent = columns.read(new Int32Array(nodes + 1), 1);
    for (let i = 1; i <= nodes; i++) parent[i] = i - parent[i];
    this.parent = parent;
    this.frame = columns.read(new Int32Array(nodes + 1).fill(-1, 0, 1), 1);
  }

  // Entries are sorted by node, then by thread, then by route.
  readEntries({entries: n}, columns) {
    this.entryNode = columns.readRising(new Int32Array(n));
    this.entryThread = columns.read(new Int32Array(n));
    this.entryRoute = this.routes ? columns.read(new Int32Array(n)) : null;  // 0: none
    const own = () => ({samples: columns.read(new Float64Array(n)),
      weight: columns.read(new Float64Array(n))});
    this.entryOwn = own();
    this.entryBefore = this.diff ? own() : null;
  }

  // Samples are sorted by entry, then by time, which is in milliseconds.
  readSamples({samples: n, asleep}, columns) {
    this.entry = columns.readRising(new Int32Array(n));
    this.time = columns.read(new Float64Array(n));
    this.sampleWeight = columns.read(new Float64Array(n));
    this.asleep = asleep ? columns.read(new Uint8Array(n)) : null;
    this.trace = this.traces ? columns.read(new Uint8Array(n)) : null;  // 0: none of the list
    let last = 0;
    for (let i = 0; i < n; i++) {
      if (i > 0 && this.entry[i] === this.entry[i - 1]) this.time[i] += this.time[i - 1];
      last = Math.max(last, this.time[i] + 1);
    }
    this.durationMs = Math.max(last, this.facts.durationMs);
  }

  // Per node: whether its stack is that of a thread that waits for work. Null if none is.
  readIdle({idle: n}, columns) {
    this.idle = n > 0 ? new Uint8Array(this.parent.length) : null;
    for (const node of columns.readRising(new Int32Array(n))) this.idle[node] = 1;
  }

  // What is folded, and what is open.
  get folds() {
    return this.foldsOf ??= new Folds(this);
  }

  // Shows the stacks of each route below a frame for it, or all of them as they are.
  group(on) {
    if (!this.routes || on === this.grouped) return;
    const {parent, frame, entryNode, idle, frameCount, names, modules, frameKinds, plumbing} = this;
    this.plain ??= {parent, frame, entryNode, idle, frameCount, names, modules, frameKinds, plumbing};
    this.byRoute ??= groupByRoute(this);
    Object.assign(this, on ? this.byRoute : this.plain, {grouped: on, foldsOf: null, groups: null, found: null,
      forms: [], colors: {light: [], dark: []}, method: this.method < this.plain.frameCount ? this.method : -1});
    this.trees.clear();
  }

  // Whether an entry is left out: that of an idle thread, or of another route than the chosen one.
  leavesOut({idle, route}) {
    const away = idle ? null : this.idle, {entryNode, entryRoute} = this;
    return entry => Boolean(away?.[entryNode[entry]]) || (typeof route === "number" && entryRoute[entry] !== route);
  }

  threadTotals(unit, filter) {
    const totals = this.threads.map(() => 0), own = this.entryOwn[unit], out = this.leavesOut(filter);
    for (let i = 0; i < own.length; i++) if (!out(i)) totals[this.entryThread[i]] += own[i];
    return totals;
  }

  // Searches for a regular expression; "" ends the search. Throws if the expression is invalid.
  search(text) {
    this.found = null;
    if (text !== "") this.found = {...searchFrames(this, text), at: -1};
  }

  // The forms of a frame's name, longest first. measure(text) returns the width of a text.
  nameForms(frame, measure) {
    return this.forms[frame] ??=
      shortNames(this.names[frame]).map(text => ({text, width: measure(text)}));
  }

  // What each node has of its own. filter.range: [from, to) in ms; filter.awake: "all", "running" or "waiting". What has
  // no time is in no range, and neither runs nor waits.
  own({unit, range, awake, idle, threads, route, trace}) {
    const skip = this.skipped(awake), out = this.leavesOut({idle, route});
    if (!range && skip < 0 && !trace) return this.spread(this.entryOwn[unit], {threads, idle, route}, 1);
    const own = new Float64Array(this.parent.length), {entryNode, entryThread} = this;
    const [from, to] = range ?? [0, Infinity];
    for (let i = 0; i < this.entry.length; i++) {
      const entry = this.entry[i];
      if (this.time[i] < from || this.time[i] >= to || out(entry)) continue;
      if ((range || skip >= 0) && this.timeless[entryThread[entry]]) continue;
      if (trace && this.trace[i] !== trace) continue;
      if (skip >= 0 && this.asleep[i] === skip) continue;
      if (threads && !threads.has(entryThread[entry])) continue;
      own[entryNode[entry]] += unit === "samples" ? 1 : this.sampleWeight[i];
    }
    return own;
  }

  // What idle threads have, and the number of threads that have nothing else: {own, whole, idle, of}.
  idleTotals({unit, route}) {
    const all = this.threadTotals(unit, {idle: true, route}), busy = this.threadTotals(unit, {idle: false, route});
    const sum = values => values.reduce((a, b) => a + b, 0);
    const count = (is, of = this.threads.filter((thread, i) => is(i))) => sum(of.map(threadCount));
    return {own: sum(all) - sum(busy), whole: sum(all), of: count(i => all[i] > 0),
      idle: count(i => all[i] > 0 && busy[i] === 0)};
  }

  // The value of `asleep` whose samples are left out, or -1 if none are. Where no thread of this
  // mode sleeps, or where that is not known, there is nothing to choose from.
  skipped(awake) {
    return !this.asleep ? -1 : awake === "running" ? 1 : awake === "waiting" ? 0 : -1;
  }

  // Adds up the values of entries by node.
  spread(values, {threads, idle, route}, scale) {
    const own = new Float64Array(this.parent.length), {entryNode, entryThread} = this;
    const out = this.leavesOut({idle, route});
    for (let i = 0; i < values.length; i++) {
      if (out(i)) continue;
      if (!threads || threads.has(entryThread[i])) own[entryNode[i]] += values[i] * scale;
    }
    return own;
  }

  // Per frame: whether it is hidden. A hidden frame leaves its cost to its caller. hide: tokens of
  // kinds, and "plumbing".
  hidden(hide) {
    const kinds = this.kinds.map(([token]) => hide.has(token)), plumbing = hide.has("plumbing");
    return this.plumbing.map((is, i) => kinds[this.frameKinds[i]] || (plumbing && is));
  }

  // filter: {threads: Set or null for all, unit, range, awake, idle, route, trace, hide, fold, width}. Without
  // `idle`, the stacks of idle threads are left out. route: "all", or the number of one (see readRoute); trace:
  // the number of one, or 0. With `fold`, plumbing is folded (flame-folds.js). With width "before", the
  // frames of a comparison are as wide as they were before.
  tree(filter) {
    const key = JSON.stringify({...filter, threads: filter.threads && [...filter.threads],
      hide: [...filter.hide].sort(), opened: filter.fold ? [...this.folds.opened].sort() : []});
    if (!this.trees.has(key)) {
      if (this.trees.size >= 6) this.trees.delete(this.trees.keys().next().value);
      this.trees.set(key, this.makeTree(filter));
    }
    return this.trees.get(key);
  }

  makeTree(filter) {
    const {unit, width} = filter, own = this.own(filter);
    const before = this.diff && this.comparable(this.spread(this.entryBefore[unit], filter, 1), own, unit);
    // The number of samples is shown beside what they stand for, except in a comparison, where the
    // two numbers are not comparable.
    const count = before ? null : unit === "samples" ? own : this.own({...filter, unit: "samples"});
    const folds = filter.fold && this.folds.any ? this.folds : null;
    return collectTree(this, {own, before, count, hidden: this.hidden(filter.hide), folds,
      byBefore: before !== null && width === "before"});
  }

  // In a comparison of shares, `before` is scaled to the sum of `own`: both sides are shares of what is shown.
  comparable(before, own, unit) {
    const sum = values => values.reduce((a, b) => a + b, 0), was = sum(before), is = sum(own);
    const shares = this.diff.normalize === "total" && was > 0 && is > 0;
    const scale = shares ? is / was : this.diff.scale[unit];
    return before.map(value => value * scale);
  }

  // Per node: whether its frame, or that of one of its callers, matches.
  matchedNodes(matches) {
    const under = new Uint8Array(this.parent.length);
    for (let i = 1; i < under.length; i++) {
      under[i] = under[this.parent[i]] || (this.frame[i] >= 0 && matches[this.frame[i]]);
    }
    return under;
  }
}
