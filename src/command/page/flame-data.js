// The recording's data as the page has it: flat arrays. A node is a path from the root; an entry is what
// one thread has of its own in a node; a sample belongs to an entry. Knows nothing of the document. What
// is looked at is a Tree (flame-tree.js) made of it by a filter.

// One mode of a recording: "cpu", "wall", ... with a unit of its own. Frames, threads and nodes are numbers
// that mean something in their mode only, so whatever is remembered by such a number is remembered here
// (or in a Tree, which knows its Recording): it cannot be taken for another mode's.
class Recording {
  // data: the mode's head; its columns are in `bytes`, and not read before open().
  constructor(data, bytes) {
    this.data = data;
    this.bytes = bytes;
    this.facts = data.facts;
    this.kinds = data.kinds;
    this.unit = data.facts.unit === "nanoseconds" ? "us" : data.facts.unit;  // of `weight`
    this.what = data.facts.what;  // what a sample is, one and several
    this.whole = data.facts.whole;  // what weights are parts of: "CPU time"
    this.counted = countsMore(data.facts) ? [this.whole, this.whole] : this.what;  // what counts are of
    this.threads = data.threads.map(([name, tid]) => ({name: data.strings[name], tid}));
    this.diff = data.diff ?? null;
    this.only = data.only ?? null;  // in a comparison: "before" or "after", the one that has it
    this.timed = data.samples > 0;
    this.trees = new Map();
    this.forms = [];              // per frame: {text, width} of its name and shorter ones
    this.colors = {light: [], dark: []};  // per frame
    this.found = null;            // {matches: per frame, count}, of the search
    this.method = -1;             // the sandwich's frame
  }

  open() {
    if (!this.data) return;
    const {data} = this, columns = new Columns(this.bytes, data.at);
    this.readFrames(data);
    this.readNodes(data, columns);
    this.readEntries(data, columns);
    this.readSamples(data, columns);
    this.data = this.bytes = null;
  }

  readFrames({frames, strings}) {
    this.frameCount = frames.length / 3;
    const column = (offset, of) => Array.from({length: this.frameCount}, (_, i) =>
      of ? of[frames[3 * i + offset]] : frames[3 * i + offset]);
    this.names = column(0, strings);
    this.modules = column(1, strings);
    this.frameKinds = column(2);
    this.plumbing = this.names.map(isPlumbing);
  }

  // Node 0 is the root; depth first, so a parent comes before its children.
  readNodes({nodes}, columns) {
    const parent = columns.read(new Int32Array(nodes + 1), 1);
    for (let i = 1; i <= nodes; i++) parent[i] = i - parent[i];
    this.parent = parent;
    this.frame = columns.read(new Int32Array(nodes + 1).fill(-1, 0, 1), 1);
  }

  // By node, then by thread.
  readEntries({entries: n}, columns) {
    this.entryNode = columns.readRising(new Int32Array(n));
    this.entryThread = columns.read(new Int32Array(n));
    const own = () => ({samples: columns.read(new Float64Array(n)),
      weight: columns.read(new Float64Array(n))});
    this.entryOwn = own();
    this.entryBefore = this.diff ? own() : null;
  }

  // By entry, then by time, in milliseconds.
  readSamples({samples: n, asleep}, columns) {
    this.entry = columns.readRising(new Int32Array(n));
    this.time = columns.read(new Float64Array(n));
    this.sampleWeight = columns.read(new Float64Array(n));
    this.asleep = asleep ? columns.read(new Uint8Array(n)) : null;
    let last = 0;
    for (let i = 0; i < n; i++) {
      if (i > 0 && this.entry[i] === this.entry[i - 1]) this.time[i] += this.time[i - 1];
      last = Math.max(last, this.time[i] + 1);
    }
    this.durationMs = Math.max(last, this.facts.durationMs);
  }

  threadTotals(unit) {
    const totals = this.threads.map(() => 0), own = this.entryOwn[unit];
    for (let i = 0; i < own.length; i++) totals[this.entryThread[i]] += own[i];
    return totals;
  }

  // A regular expression; "" for none. Throws on a wrong one.
  search(text) {
    this.found = null;
    if (text !== "") this.found = searchFrames(this, text);
  }

  // Ways to write a frame's name, longest first. measure(text): its width.
  nameForms(frame, measure) {
    return this.forms[frame] ??=
      shortNames(this.names[frame]).map(text => ({text, width: measure(text)}));
  }

  // What each node has of its own. filter.range: [from, to) in ms; filter.awake: "all", "running",
  // "waiting".
  own({unit, range, awake, threads}) {
    const skip = this.skipped(awake);
    if (!range && skip < 0) return this.spread(this.entryOwn[unit], threads, 1);
    const own = new Float64Array(this.parent.length), {entryNode, entryThread} = this;
    const [from, to] = range ?? [0, Infinity];
    for (let i = 0; i < this.entry.length; i++) {
      const entry = this.entry[i];
      if (this.time[i] < from || this.time[i] >= to) continue;
      if (skip >= 0 && this.asleep[i] === skip) continue;
      if (threads && !threads.has(entryThread[entry])) continue;
      own[entryNode[entry]] += unit === "samples" ? 1 : this.sampleWeight[i];
    }
    return own;
  }

  // Which samples are left out, by what `asleep` says of them; -1: none. No thread of this mode sleeps, or
  // it is not known: then there is nothing to choose from.
  skipped(awake) {
    return !this.asleep ? -1 : awake === "running" ? 1 : awake === "waiting" ? 0 : -1;
  }

  // Of entries to nodes.
  spread(values, threads, scale) {
    const own = new Float64Array(this.parent.length), {entryNode, entryThread} = this;
    for (let i = 0; i < values.length; i++) {
      if (!threads || threads.has(entryThread[i])) own[entryNode[i]] += values[i] * scale;
    }
    return own;
  }

  // A frame that is hidden leaves its cost to its caller. hide: tokens of kinds, and "plumbing".
  hidden(hide) {
    const kinds = this.kinds.map(([token]) => hide.has(token)), plumbing = hide.has("plumbing");
    return this.frameKinds.map((kind, i) => kinds[kind] || (plumbing && this.plumbing[i]));
  }

  // filter: {threads: Set or null for all, unit, range, awake, hide, width}. width "before": of a
  // comparison, frames are as wide as they were.
  tree(filter) {
    const key = JSON.stringify({...filter, threads: filter.threads && [...filter.threads],
      hide: [...filter.hide].sort()});
    if (!this.trees.has(key)) {
      if (this.trees.size >= 6) this.trees.delete(this.trees.keys().next().value);
      this.trees.set(key, this.makeTree(filter));
    }
    return this.trees.get(key);
  }

  makeTree(filter) {
    const {unit, threads, width} = filter, own = this.own(filter);
    const before = this.diff &&
      this.spread(this.entryBefore[unit], threads, this.diff.scale[unit]);
    // Numbers of samples beside what they stand for; a comparison's are not comparable.
    const count = before ? null : unit === "samples" ? own : this.own({...filter, unit: "samples"});
    return collectTree(this, {own, before, count, hidden: this.hidden(filter.hide),
      byBefore: before !== null && width === "before"});
  }

  // Per node: whether it or a caller of it is a frame that matches.
  matchedNodes(matches) {
    const under = new Uint8Array(this.parent.length);
    for (let i = 1; i < under.length; i++) {
      under[i] = under[this.parent[i]] || (this.frame[i] >= 0 && matches[this.frame[i]]);
    }
    return under;
  }
}
