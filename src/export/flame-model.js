// The model behind the page: the recording's flat arrays, a call tree for what is being looked at
// (one thread or all merged), its layout, and the search. Knows nothing of the document.
//
// Trees are parallel arrays; a node is an index, node 0 is the root, and parents always come before
// their children, so every sum is one loop and nothing recurses, however deep the stacks are.

const ALL_THREADS = -1;

class Recording {
  constructor(data) {
    this.facts = data.facts;
    this.kinds = data.kinds;
    this.frameCount = data.frames.length / 3;
    this.names = [];
    this.modules = [];
    this.frameKinds = [];
    for (let i = 0; i < data.frames.length; i += 3) {
      this.names.push(data.strings[data.frames[i]]);
      this.modules.push(data.strings[data.frames[i + 1]]);
      this.frameKinds.push(data.frames[i + 2]);
    }
    this.threads = data.threads.map(([name, tid]) => ({name: data.strings[name], tid}));
    this.readNodes(data);
    this.views = new Map();
  }

  // The data's node i is node i + 1 here; `parent` is written as a distance.
  readNodes(data) {
    const n = data.parent.length + 1;
    this.parent = new Int32Array(n);
    this.frame = new Int32Array(n).fill(-1);
    this.thread = new Int32Array(n).fill(-1);
    this.samples = new Float64Array(n);
    this.time = new Float64Array(n);
    for (let i = 1; i < n; i++) {
      const parent = i - data.parent[i - 1];
      this.parent[i] = parent;
      this.samples[i] = data.self[i - 1];
      this.time[i] = data.selfUs[i - 1];
      if (parent === 0) {
        this.thread[i] = data.frame[i - 1];
      } else {
        this.thread[i] = this.thread[parent];
        this.frame[i] = data.frame[i - 1];
      }
    }
  }

  threadTotals() {
    const totals = this.threads.map(() => 0);
    for (let i = 1; i < this.parent.length; i++) totals[this.thread[i]] += this.samples[i];
    return totals;
  }

  // unit: "samples" or "time". Without native frames, what they cost is their managed caller's own.
  view(thread, unit, native) {
    const key = `${thread} ${unit} ${native}`;
    if (!this.views.has(key)) {
      const isNative = kind => /^(runtime|native)$/.test(this.kinds[kind][0]);
      const hidden = this.frameKinds.map(kind => !native && isNative(kind));
      this.views.set(key, new View(this, thread, this[unit], hidden));
    }
    return this.views.get(key);
  }
}

// (parent, frame) -> node, with open addressing: a Map of a million keys takes seconds, this 0.1.
class ChildTable {
  constructor(capacity) {
    let size = 64;
    while (size < capacity * 2) size *= 2;
    this.mask = size - 1;
    this.slots = new Int32Array(size);
  }

  // The node under the key, or 0 after having put `fresh` there.
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

class View {
  constructor(recording, thread, self, hidden) {
    this.recording = recording;
    this.collect(recording, thread, self, hidden);
    this.sum();
    this.sortChildren();
    this.place();
  }

  // Takes the nodes of the thread, or of all, without the thread level and without the frames that
  // are hidden, equal paths merged.
  collect(rec, thread, self, hidden) {
    const n = rec.parent.length;
    const map = new Int32Array(n);
    const parent = new Int32Array(n), frame = new Int32Array(n), own = new Float64Array(n);
    const table = new ChildTable(n);
    let count = 1;
    frame[0] = -1;
    for (let i = 1; i < n; i++) {
      if (thread !== ALL_THREADS && rec.thread[i] !== thread) continue;
      if (rec.parent[i] !== 0) {
        const above = map[rec.parent[i]];
        let node = hidden[rec.frame[i]] ? above :
          table.findOrPut(above, rec.frame[i], parent, frame, count);
        if (node === 0 && !hidden[rec.frame[i]]) {
          node = count++;
          parent[node] = above;
          frame[node] = rec.frame[i];
        }
        map[i] = node;
      }
      own[map[i]] += self[i];
    }
    this.count = count;
    this.parent = parent.slice(0, count);
    this.frame = frame.slice(0, count);
    this.self = own.slice(0, count);
  }

  sum() {
    this.total = this.self.slice();
    for (let i = this.count - 1; i > 0; i--) this.total[this.parent[i]] += this.total[i];
  }

  // children[first[i] .. first[i + 1]): of node i, widest first.
  sortChildren() {
    this.first = new Int32Array(this.count + 1);
    for (let i = 1; i < this.count; i++) this.first[this.parent[i] + 1]++;
    for (let i = 0; i < this.count; i++) this.first[i + 1] += this.first[i];
    this.children = new Int32Array(this.count > 0 ? this.count - 1 : 0);
    const next = this.first.slice();
    for (let i = 1; i < this.count; i++) this.children[next[this.parent[i]]++] = i;
    const wider = (a, b) => this.total[b] - this.total[a] || a - b;
    for (let i = 0; i < this.count; i++) {
      if (this.first[i + 1] - this.first[i] > 1) {
        this.children.subarray(this.first[i], this.first[i + 1]).sort(wider);
      }
    }
  }

  // left: in the unit of `total`; a node's own part is to the right of its children.
  place() {
    this.left = new Float64Array(this.count);
    this.depth = new Int32Array(this.count);
    this.height = 1;
    for (let i = 0; i < this.count; i++) {
      let x = this.left[i];
      for (let c = this.first[i]; c < this.first[i + 1]; c++) {
        const child = this.children[c];
        this.left[child] = x;
        this.depth[child] = this.depth[i] + 1;
        x += this.total[child];
      }
      if (this.depth[i] + 1 > this.height) this.height = this.depth[i] + 1;
    }
  }

  // The child of `node` that lies over x, or 0.
  childAt(node, x) {
    let low = this.first[node], high = this.first[node + 1] - 1;
    while (low <= high) {
      const middle = (low + high) >> 1, child = this.children[middle];
      if (x < this.left[child]) high = middle - 1;
      else if (x >= this.left[child] + this.total[child]) low = middle + 1;
      else return child;
    }
    return 0;
  }

  // The node of that depth over x; -1: there is none.
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
    const from = this.first[this.parent[node]], to = this.first[this.parent[node] + 1];
    for (let c = from; c < to; c++) {
      if (this.children[c] !== node) continue;
      return c + step >= from && c + step < to ? this.children[c + step] : node;
    }
    return node;
  }

  widestChild(node) {
    return this.first[node] < this.first[node + 1] ? this.children[this.first[node]] : node;
  }

  // The outermost, widest node of the frame with that name; 0: there is none.
  widestNamed(name) {
    let best = 0;
    for (let i = 1; i < this.count; i++) {
      if (this.recording.names[this.frame[i]] !== name) continue;
      if (best === 0 || this.total[i] > this.total[best]) best = i;
    }
    return best;
  }

  // matches: per frame. How much of the graph has a match on its stack; each stack counts once.
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
}

// A regular expression, case ignored unless a capital is asked for. Throws on a wrong one.
function searchFrames(recording, text) {
  const regex = new RegExp(text, /[A-Z]/.test(text.replace(/\\./g, "")) ? "" : "i");
  const matches = new Uint8Array(recording.frameCount);
  let count = 0;
  recording.names.forEach((name, i) => {
    if (regex.test(name)) {
      matches[i] = 1;
      count++;
    }
  });
  return {matches, count};
}

// Where the method's own name starts: behind the last dot that is outside of <>, [] and ().
function methodStart(name) {
  let nesting = 0;
  for (let i = name.length - 1; i > 0; i--) {
    const c = name[i];
    if (c === ">" || c === "]" || c === ")") nesting++;
    else if (c === "<" || c === "[" || c === "(") nesting--;
    else if (c === "." && nesting <= 0) return name[i - 1] === "." ? i : i + 1;
  }
  return 0;
}

// Shorter and shorter ways to write a name: without namespaces, then the method alone, unless that
// says nothing (constructors, MoveNext); a library without "lib" and ".so".
function shortNames(name) {
  const library = /^\[(?:lib)?(.*)\.so[.\d]*\]$/.exec(name);
  if (library) return [name, `[${library[1]}]`];
  const start = methodStart(name);
  if (start === 0) return [name];
  const method = name.slice(start), type = name.slice(0, start).replace(/\.$/, "");
  const bare = type.slice(methodStart(type)).replace(/(?:\w+\.)+(?=\w)/g, "");
  const plain = method.replace(/(?:\w+\.)+(?=\w)/g, "");
  const medium = `${bare}.${plain}`;
  const machine = /<([^<>]+)>d__\d+$/.exec(bare);  // of an async method or an iterator
  if (machine && plain === "MoveNext") return [name, medium, machine[1]];
  return /^(\.c?ctor|MoveNext)$/.test(plain) ? [name, medium] : [name, medium, plain];
}
