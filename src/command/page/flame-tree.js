// A call tree of what is looked at (some threads, some time, merged), its layout, and queries about
// it: callers and callees of a method, totals by method. Nothing here knows the document.
//
// Trees are parallel arrays; a node is an index, node 0 is the root, and parents always come before
// their children, so every sum is one loop and nothing recurses, however deep the stacks are.

// Maps (parent, frame) to a node, with open addressing: filling a Map with a million keys takes
// seconds, and filling this takes 0.1 s.
class ChildTable {
  constructor(capacity) {
    let size = 64;
    while (size < capacity * 2) size *= 2;
    this.mask = size - 1;
    this.slots = new Int32Array(size);
  }

  // Returns the node under the key, or puts `fresh` there and returns 0.
  findOrPut(parent, frame, parents, frames, fresh) {
    let at = (Math.imul(parent, 0x9e3779b1) ^ Math.imul(frame, 0x85ebca6b)) >>> 0;
    at = (at ^ (at >>> 15)) & this.mask;
    for (; this.slots[at] !== 0; at = (at + 1) & this.mask) {
      const node = this.slots[at];
      if (parents[node] === parent && frames[node] === frame) return node;
    }
    this.slots[at] = fresh;
    return 0;
  }
}

// Merges nodes that have the same path. Node 0 exists from the start.
class TreeBuilder {
  constructor(recording, capacity, {before, count}) {
    this.recording = recording;
    this.parent = new Int32Array(capacity);
    this.frame = new Int32Array(capacity).fill(-1, 0, 1);
    this.own = new Float64Array(capacity);
    this.before = before ? new Float64Array(capacity) : null;
    this.samples = count ? new Float64Array(capacity) : null;
    this.table = new ChildTable(capacity);
    this.count = 1;
  }

  child(parent, frame) {
    if (this.count >= this.parent.length) this.grow();
    const node = this.table.findOrPut(parent, frame, this.parent, this.frame, this.count);
    if (node !== 0) return node;
    this.parent[this.count] = parent;
    this.frame[this.count] = frame;
    return this.count++;
  }

  grow() {
    const larger = (Type, old) => {
      const array = new Type(old.length * 2);
      array.set(old);
      return array;
    };
    this.parent = larger(Int32Array, this.parent);
    this.frame = larger(Int32Array, this.frame);
    this.own = larger(Float64Array, this.own);
    if (this.before) this.before = larger(Float64Array, this.before);
    if (this.samples) this.samples = larger(Float64Array, this.samples);
    this.table = new ChildTable(this.parent.length);
    for (let i = 1; i < this.count; i++) {
      this.table.findOrPut(this.parent[i], this.frame[i], this.parent, this.frame, i);
    }
  }

  tree(byBefore, nodeOf) {
    const cut = array => array && array.slice(0, this.count);
    return new Tree(this.recording, {nodeOf, parent: cut(this.parent), frame: cut(this.frame),
      own: cut(this.own), before: cut(this.before), count: cut(this.samples), byBefore});
  }
}

// Makes a tree of the recording's nodes, without hidden frames and without nodes that have nothing
// in this selection. The recording's paths are distinct; only hiding and folding makes some alike.
function collectTree(rec, {own, before, count: samples, hidden, folds, byBefore}) {
  const n = rec.parent.length, live = new Uint8Array(n), {parent, frame} = rec;
  let count = 1;
  for (let i = n - 1; i > 0; i--) {
    if (!live[i] && own[i] === 0 && !before?.[i] && !samples?.[i]) continue;
    live[i] = live[parent[i]] = 1;
    count++;
  }
  if (folds || hidden.some(is => is)) {
    return mergeTree(rec, {own, before, samples, hidden, folds, byBefore, live, count});
  }
  if (count === n) return new Tree(rec, {parent, frame, own, before, count: samples, byBefore});
  const kept = {parent: new Int32Array(count), frame: new Int32Array(count).fill(-1, 0, 1),
    own: new Float64Array(count), before: before && new Float64Array(count),
    count: samples && new Float64Array(count), byBefore};
  kept.own[0] = own[0];
  if (before) kept.before[0] = before[0];
  if (samples) kept.count[0] = samples[0];
  const map = new Int32Array(n);
  for (let i = 1, at = 1; i < n; i++) {
    if (!live[i]) continue;
    kept.parent[at] = map[parent[i]];
    kept.frame[at] = frame[i];
    kept.own[at] = own[i];
    if (before) kept.before[at] = before[i];
    if (samples) kept.count[at] = samples[i];
    map[i] = at++;
  }
  return new Tree(rec, {...kept, nodeOf: map});
}

function mergeTree(rec, {own, before, samples, hidden, folds, byBefore, live, count}) {
  const builder = new TreeBuilder(rec, count, {before, count: samples});
  const map = new Int32Array(rec.parent.length);
  for (let i = 0; i < map.length; i++) {
    if (i > 0 && !live[i]) continue;
    const above = map[rec.parent[i]], frame = rec.frame[i];
    map[i] = i === 0 || hidden[frame] ? above :
      folds ? folds.place(builder, above, i, frame) : builder.child(above, frame);
    builder.own[map[i]] += own[i];
    if (before) builder.before[map[i]] += before[i];
    if (samples) builder.samples[map[i]] += samples[i];
  }
  return builder.tree(byBefore, map);
}

class Tree {
  // before: in a comparison, what each node had before, made comparable to `own`. count: samples.
  // nodeOf: for each of the recording's nodes, its node here, or 0; none if they are the same.
  constructor(recording, {parent, frame, own, before, count, byBefore, nodeOf = null}) {
    this.recording = recording;
    this.of = this;  // the tree that shares refer to; for a sandwich's trees, the one they are made from
    this.count = parent.length;
    this.parent = parent;
    this.frame = frame;
    this.byBefore = byBefore;
    this.nodeOf = nodeOf;
    this.ownAfter = own;
    this.ownBefore = before;
    this.ownSamples = count;
    this.after = this.sums(own);
    this.before = before ? this.sums(before) : null;
    this.self = byBefore ? before : own;
    this.total = byBefore ? this.before : this.after;
    this.left = new Float64Array(this.count);  // in the unit of `total`; see arrange()
    this.arranged = new Uint8Array(this.count);
    this.listChildren();
    this.measure();
  }

  // What shares are shares of. Both sides of a comparison have the same, so that a change is their difference.
  get whole() {
    return this.before ? Math.max(this.after[0], this.before[0]) : this.total[0];
  }

  // Where a node of the recording is.
  at(i) {
    return this.nodeOf ? this.nodeOf[i] : i;
  }

  isFolded(node) {
    return this.frame[node] >= this.recording.frameCount;
  }

  // Per node: whether its frame matches, or one of those that are folded into it.
  hits({matches}) {
    if (this.hitsOf === matches) return this.hitNodes;
    const {recording: rec} = this, hits = Uint8Array.from(this.frame, frame => matches[frame] ?? 0);
    for (let i = 1; this.nodeOf && i < this.nodeOf.length; i++) {
      if (matches[rec.frame[i]] && this.isFolded(this.nodeOf[i])) hits[this.nodeOf[i]] = 1;
    }
    this.hitsOf = matches;
    return this.hitNodes = hits;
  }

  // Per node: whether it is a hit, or one is below it.
  hitsBelow(found) {
    const hits = this.hits(found);
    if (this.hitsBelowOf === hits) return this.hitsUnder;
    const under = hits.slice();
    for (let i = this.count - 1; i > 0; i--) under[this.parent[i]] |= under[i];
    this.hitsBelowOf = hits;
    return this.hitsUnder = under;
  }

  // The hits that are below no other hit, the widest first.
  outermostHits(found) {
    const hits = this.hits(found), inside = new Uint8Array(this.count), list = [];
    for (let i = 1; i < this.count; i++) {
      inside[i] = inside[this.parent[i]] | hits[i];
      if (hits[i] && !inside[this.parent[i]] && this.total[i] > 0) list.push(i);
    }
    return list.sort((a, b) => this.total[b] - this.total[a] || a - b);
  }

  // The samples of each node and of all that is below it; null in a comparison.
  get samples() {
    return this.samplesOf ??= this.ownSamples && this.sums(this.ownSamples);
  }

  sums(own) {
    const total = own.slice();
    for (let i = this.count - 1; i > 0; i--) total[this.parent[i]] += total[i];
    return total;
  }

  // children[first[i] .. first[i + 1]) are the children of node i, widest first once it is
  // arranged.
  listChildren() {
    const {count, parent} = this, first = this.first = new Int32Array(count + 1);
    const children = this.children = new Int32Array(count - 1);
    for (let i = 1; i < count; i++) first[parent[i]]++;
    for (let i = 0, sum = 0; i <= count; i++) sum = first[i] += sum;
    for (let i = count - 1; i > 0; i--) children[--first[parent[i]]] = i;
  }

  measure() {
    const {parent} = this, depth = this.depth = new Int32Array(this.count);
    let deepest = 0;
    for (let i = 1; i < this.count; i++) {
      depth[i] = depth[parent[i]] + 1;
      if (depth[i] > deepest) deepest = depth[i];
    }
    this.height = deepest + 1;
  }

  // Sorts a node's children and gives them their places; the node's own part is to the right of
  // them. A node that is never looked at is never sorted. The node itself must have its place.
  arrange(node) {
    if (this.arranged[node]) return;
    this.arranged[node] = 1;
    const {total, first, children} = this, from = first[node], to = first[node + 1];
    if (to - from > 1) children.subarray(from, to).sort((a, b) => total[b] - total[a] || a - b);
    for (let c = from, x = this.left[node]; c < to; c++) {
      this.left[children[c]] = x;
      x += total[children[c]];
    }
  }

  // Where the node begins, whether or not the nodes above it are arranged.
  leftOf(node) {
    const path = [];
    for (let up = node; up > 0; up = this.parent[up]) path.push(this.parent[up]);
    while (path.length > 0) this.arrange(path.pop());
    return this.left[node];
  }

  // The child of `node` that lies over x, or 0.
  childAt(node, x) {
    this.arrange(node);
    let low = this.first[node], high = this.first[node + 1] - 1;
    while (low <= high) {
      const middle = (low + high) >> 1, child = this.children[middle];
      if (x < this.left[child]) high = middle - 1;
      else if (x >= this.left[child] + this.total[child]) low = middle + 1;
      else return child;
    }
    return 0;
  }

  // The node of that depth that lies over x, or -1.
  nodeAt(depth, x) {
    let node = 0;
    if (x < 0 || x >= this.total[0]) return -1;
    for (let d = 0; d < depth; d++) {
      node = this.childAt(node, x);
      if (node === 0) return -1;
    }
    return node;
  }

  sibling(node, step) {
    if (node === 0) return 0;
    this.leftOf(node);
    const from = this.first[this.parent[node]], to = this.first[this.parent[node] + 1];
    for (let c = from; c < to; c++) {
      if (this.children[c] !== node) continue;
      return c + step >= from && c + step < to ? this.children[c + step] : node;
    }
    return node;
  }

  widestChild(node) {
    this.leftOf(node);
    this.arrange(node);
    return this.first[node] < this.first[node + 1] ? this.children[this.first[node]] : node;
  }

  // The widest node of the frame with that name; of nested ones that are equally wide, the
  // outermost. 0: there is none.
  widestNamed(name) {
    let best = 0;
    for (let i = 1; i < this.count; i++) {
      if (this.recording.names[this.frame[i]] !== name) continue;
      if (best === 0 || this.total[i] > this.total[best]) best = i;
    }
    return best;
  }

  // How much of the graph has a match on its stack; each stack counts once. matches: per frame.
  matched(matches) {
    const under = new Uint8Array(this.count);
    let sum = 0;
    for (let i = 1; i < this.count; i++) {
      const above = under[this.parent[i]];
      under[i] = above | matches[this.frame[i]];
      if (!above && matches[this.frame[i]]) sum += this.total[i];
    }
    return sum;
  }

  // Per node: 1 if none of its callers is of the same frame, so that recursion counts once.
  get outermost() {
    return this.outermostNodes ??= this.outermostBy(this.recording.names.map((name, i) => i));
  }

  // Per node: 1 if none of its callers is of the same group. group: a number below that of frames, per frame.
  outermostBy(group) {
    const flags = new Uint8Array(this.count), next = this.first.slice();
    const open = new Int32Array(group.length);
    let node = 0;
    for (;;) {
      if (next[node] < this.first[node + 1]) {
        node = this.children[next[node]++];
        if (open[group[this.frame[node]]]++ === 0) flags[node] = 1;
      } else if (node === 0) {
        break;
      } else {
        open[group[this.frame[node]]]--;
        node = this.parent[node];
      }
    }
    return flags;
  }

  get columns() {
    return {before: this.before, count: this.ownSamples};
  }

  // {callers, callees} of a frame. Those of the last frame are kept.
  sandwich(frame) {
    if (this.sandwichOf !== frame) {
      this.sandwichOf = frame;
      this.sandwiched = {callers: this.callers(frame), callees: this.callees(frame)};
      this.sandwiched.callers.of = this.sandwiched.callees.of = this;
    }
    return this.sandwiched;
  }

  // What the frame calls, merged over all places that call it. The frame is the root's only child.
  callees(frame) {
    const flags = this.outermost, map = new Int32Array(this.count);
    const builder = new TreeBuilder(this.recording, 1024, this.columns);
    for (let i = 1; i < this.count; i++) {
      const above = map[this.parent[i]];
      if (above > 0) map[i] = builder.child(above, this.frame[i]);
      else if (flags[i] && this.frame[i] === frame) map[i] = builder.child(0, frame);
      else continue;
      builder.own[map[i]] += this.ownAfter[i];
      if (this.before) builder.before[map[i]] += this.ownBefore[i];
      if (this.samples) builder.samples[map[i]] += this.ownSamples[i];
    }
    return builder.tree(this.byBefore);
  }

  // What calls the frame, which is the root's only child: its callers are its children, and so on.
  callers(frame) {
    const flags = this.outermost;
    const builder = new TreeBuilder(this.recording, 1024, this.columns);
    for (let i = 1; i < this.count; i++) {
      if (!flags[i] || this.frame[i] !== frame) continue;
      let at = builder.child(0, frame);
      for (let up = this.parent[i]; up > 0; up = this.parent[up]) {
        at = builder.child(at, this.frame[up]);
      }
      builder.own[at] += this.after[i];
      if (this.before) builder.before[at] += this.before[i];
      if (this.samples) builder.samples[at] += this.samples[i];
    }
    return builder.tree(this.byBefore);
  }

  // Every method of the tree: {frame, self, total, selfSamples, totalSamples} and, in a comparison,
  // {selfBefore, totalBefore}.
  methods() {
    if (this.methodRows) return this.methodRows;
    const flags = this.outermost, rows = new Map();
    for (let i = 1; i < this.count; i++) {
      const frame = this.frame[i];
      if (!rows.has(frame)) {
        rows.set(frame, {frame, self: 0, total: 0, selfSamples: 0, totalSamples: 0,
          selfBefore: 0, totalBefore: 0});
      }
      const row = rows.get(frame);
      row.self += this.ownAfter[i];
      if (flags[i]) row.total += this.after[i];
      if (this.samples) {
        row.selfSamples += this.ownSamples[i];
        if (flags[i]) row.totalSamples += this.samples[i];
      }
      if (!this.before) continue;
      row.selfBefore += this.ownBefore[i];
      if (flags[i]) row.totalBefore += this.before[i];
    }
    return this.methodRows = [...rows.values()];
  }
}
