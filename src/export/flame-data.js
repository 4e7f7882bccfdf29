// The recording's data as the page has it: flat arrays, one entry for each node of the call tree or
// each sample. Knows nothing of the document. What is looked at is a Tree (flame-tree.js) made of it
// by a filter.

// The data is base64 of zlib of JSON: a fifth of the JSON's size.
async function unpack(base64) {
  const text = atob(base64.trim()), bytes = new Uint8Array(text.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

// One mode of a recording: "cpu", "wall", ... with a unit of its own.
class Recording {
  constructor(data) {
    this.facts = data.facts;
    this.kinds = data.kinds;
    this.unit = data.selfUs ? "us" : data.facts.unit ?? "count";  // of `weight`
    this.what = data.facts.what;  // what a sample is, one and several
    // By what a frame is as wide as it is, unless something else is chosen.
    this.usualUnit = /^(cpu|wall|exception)$/.test(data.facts.mode) ? "samples" : "weight";
    this.frameCount = data.frames.length / 3;
    this.names = [];
    this.modules = [];
    this.frameKinds = [];
    for (let i = 0; i < data.frames.length; i += 3) {
      this.names.push(data.strings[data.frames[i]]);
      this.modules.push(data.strings[data.frames[i + 1]]);
      this.frameKinds.push(data.frames[i + 2]);
    }
    this.plumbing = this.names.map(isPlumbing);
    this.threads = data.threads.map(([name, tid]) => ({name: data.strings[name], tid}));
    this.diff = data.diff ?? null;
    this.only = data.only ?? null;  // in a comparison: "before" or "after", the one that has it
    this.readNodes(data);
    this.readSamples(data);
    this.trees = new Map();
  }

  // The data's node i is node i + 1 here; `parent` is written as a distance.
  readNodes(data) {
    const n = data.parent.length + 1, diff = this.diff;
    this.parent = new Int32Array(n);
    this.frame = new Int32Array(n).fill(-1);
    this.thread = new Int32Array(n).fill(-1);
    const column = values => {
      const own = new Float64Array(n);
      own.set(values, 1);
      return own;
    };
    this.samples = column(data.self);
    this.weight = column(data.selfUs ?? data.selfWeight);
    if (diff) this.before = {samples: column(diff.self), weight: column(diff.selfUs ?? diff.selfWeight)};
    for (let i = 1; i < n; i++) {
      const parent = i - data.parent[i - 1];
      this.parent[i] = parent;
      this.thread[i] = parent === 0 ? data.frame[i - 1] : this.thread[parent];
      if (parent !== 0) this.frame[i] = data.frame[i - 1];
    }
  }

  // Node by node, `self` times of each, in milliseconds, as distances.
  readSamples(data) {
    const n = data.time ? data.time.length : 0;
    this.timed = n > 0;
    this.time = new Float64Array(n);
    this.leaf = new Int32Array(n);
    this.sampleWeight = Float64Array.from(data.timeWeight ?? []);
    this.asleep = data.asleep ? Uint8Array.from(data.asleep) : null;
    for (let at = 0, node = 1; node < this.parent.length; node++) {
      for (let i = 0, time = 0; i < this.samples[node] && at < n; i++, at++) {
        time += data.time[at];
        this.time[at] = time;
        this.leaf[at] = node;
      }
    }
    let last = 0;
    for (let i = 0; i < n; i++) last = Math.max(last, this.time[i] + 1);
    this.durationMs = Math.max(last, this.facts.durationMs);
  }

  threadTotals() {
    const totals = this.threads.map(() => 0);
    for (let i = 1; i < this.parent.length; i++) totals[this.thread[i]] += this.samples[i];
    return totals;
  }

  // What each node has of its own. filter.range: [from, to) in ms; filter.awake: "all", "running",
  // "waiting".
  own({unit, range, awake}) {
    if (!range && awake === "all") return this[unit];
    const own = new Float64Array(this.parent.length);
    const skip = awake === "running" ? 1 : awake === "waiting" ? 0 : -1;
    const [from, to] = range ?? [0, Infinity];
    for (let i = 0; i < this.leaf.length; i++) {
      if (this.time[i] < from || this.time[i] >= to) continue;
      if (skip >= 0 && (this.asleep ? this.asleep[i] : 0) === skip) continue;
      own[this.leaf[i]] += unit === "samples" ? 1 : this.sampleWeight[i];
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
    const own = this.own(filter), hidden = this.hidden(filter.hide);
    const before = this.diff ? this.before[filter.unit] : null;
    return collectTree(this, {own, before, hidden, threads: filter.threads,
      scale: this.diff ? this.diff.scale[filter.unit] : 1,
      byBefore: this.diff !== null && filter.width === "before"});
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
