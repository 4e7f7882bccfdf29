// A flame graph. Nothing narrower than half a pixel is drawn on its own, so the cost of a picture does
// not depend on the recording's size.

const ROW = 19;             // pixels
const MIN_WIDTH = 0.5;      // narrower nodes are drawn together, as one shaded strip
const LABEL_MIN = 26;
const FOUND_MIN = 2;        // a search's hits are as wide as this at least
const HEIGHT_MIN = 2;       // narrower boxes do not make the graph higher
const FULL_MIN = 0.1;       // rows whose boxes cover less of the width may be scrolled to
const FONT = '12px ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", monospace';
const ZOOM_MS = 160;

// A canvas that is as large as the visible part of `host`, an element that scrolls.
class Surface {
  constructor(host, look, events) {
    this.host = host;
    this.look = look;
    this.events = events;
    this.canvas = document.createElement("canvas");
    this.spacer = document.createElement("div");
    this.spacer.append(this.canvas);
    host.append(this.spacer);
    this.ink = this.canvas.getContext("2d");
    new ResizeObserver(() => this.resize()).observe(host);
  }

  // content: the height of all of it, in pixels
  fit(content) {
    const ratio = window.devicePixelRatio || 1;
    this.spacer.style.height = content + "px";
    this.width = this.host.clientWidth;
    this.height = this.host.clientHeight;
    this.canvas.width = Math.max(1, Math.round(this.width * ratio));
    this.canvas.height = Math.max(1, Math.round(this.height * ratio));
    this.canvas.style.width = this.width + "px";
    this.canvas.style.height = this.height + "px";
  }

  clear() {
    const ratio = window.devicePixelRatio || 1;
    this.ink.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.ink.clearRect(0, 0, this.width, this.height);
  }
}

class Chart extends Surface {
  // events: select(node), zoomed(), resized(), hover(node, event), unfold(node).
  constructor(host, look, events) {
    super(host, look, events);
    this.tree = null;
    this.upward = false;      // the root is at the bottom
    this.skip = 0;            // rows at the root that are not shown
    this.width = this.height = this.content = this.shown = this.full = 0;
    this.below = 0;  // pixels below the visible part; kept by a resize if upward
    this.animation = this.drawing = 0;
    this.reset();
    this.listen();
  }

  reset() {
    this.history = [];  // nodes that were zoomed to earlier
    this.focus = 0;
    this.selected = this.hovered = this.clicked = -1;
    this.from = 0;  // the part of the graph that is drawn, in the unit of Tree.left
    this.to = this.tree ? this.tree.total[0] || 1 : 1;
  }

  // Shows another tree, or none, and forgets the zoom and the selection in the previous one.
  use(tree) {
    if (tree === this.tree) return;
    cancelAnimationFrame(this.animation);
    this.tree = tree;
    this.reset();
  }

  show(tree, {upward, skip = 0}) {
    this.use(tree);
    this.upward = upward;
    this.skip = skip;
    this.resize();
    this.host.scrollTop = upward ? this.host.scrollHeight : 0;
    this.draw();
  }

  // The chart is as high as its content, and scrolls where the page has less room.
  resize() {
    if (!this.tree) return;
    const {below} = this, {deepest, full} = this.depths();
    this.shown = deepest + 1;
    this.content = this.rows() * ROW;
    this.full = Math.min(this.content, (full + 3 - this.skip) * ROW);  // with two rows that lead on
    this.host.style.minHeight = `min(${this.full}px, 45%)`;
    this.fit(this.content);
    if (this.upward) this.host.scrollTop = this.content - this.height - below;
    this.draw();
    this.events.resized();
  }

  rows() {
    return this.shown - this.skip;
  }

  // `deepest`: the depth of the deepest box or strip of the zoom that lies at a box that is not too narrow; of
  // what is deeper, a zoom shows more. `full`: that of the deepest row that is covered to some part.
  depths() {
    const {tree, focus} = this, inside = new Uint8Array(tree.count), covered = new Float64Array(tree.height + 1);
    // The width without a scroll bar: it must not depend on the height, which depends on it.
    const narrow = HEIGHT_MIN * tree.total[focus] / Math.max(1, this.host.offsetWidth);
    let deepest = tree.depth[focus], full = deepest;
    inside[focus] = 1;
    for (let i = focus + 1; i < tree.count; i++) {
      const above = tree.parent[i];
      if (!inside[above] || tree.total[above] < narrow || tree.total[i] === 0) continue;
      inside[i] = 1;
      deepest = Math.max(deepest, tree.depth[i]);
      covered[tree.depth[i]] += tree.total[i];
    }
    while (full < deepest && covered[full + 1] >= FULL_MIN * tree.total[focus]) full++;
    return {deepest, full};
  }

  rowTop(depth) {
    const row = depth - this.skip, scroll = this.host.scrollTop;
    return (this.upward ? this.rows() - 1 - row : row) * ROW - scroll;
  }

  toPixel(x) {
    return (x - this.from) / (this.to - this.from) * this.width;
  }

  // ---- drawing ----

  draw() {
    const {ink, tree} = this;
    this.clear();
    // When the window has grown, the browser has already scrolled to where resize() does not want
    // it.
    if (this.host.clientHeight === this.height) this.below = this.content - this.host.scrollTop - this.height;
    if (!tree || tree.total[0] === 0) return;
    ink.font = FONT;
    ink.textBaseline = "middle";
    const pending = [0];
    while (pending.length > 0) {
      const node = pending.pop();
      const x = Math.max(0, this.toPixel(tree.left[node]));
      const right = Math.min(this.width, this.toPixel(tree.left[node] + tree.total[node]));
      const y = this.rowTop(tree.depth[node]);
      if (tree.depth[node] >= this.skip && y > -ROW && y < this.height) {
        this.drawNode(node, x, right - x, y);
      }
      // Children's rows are further out in one direction, so those beyond the window's edge are not
      // visited.
      if (this.upward ? y > -ROW : y < this.height) this.drawChildren(node, pending);
    }
    ink.globalAlpha = 1;
  }

  redraw() {
    if (this.drawing) return;
    this.drawing = requestAnimationFrame(() => {
      this.drawing = 0;
      this.draw();
    });
  }

  drawNode(node, x, width, y) {
    const {ink, tree, look} = this, frame = tree.frame[node], search = tree.recording.found;
    const found = search && node > 0 && tree.hits(search)[node];
    const dimmed = search && node > 0 && !found;
    const above = tree.depth[node] < tree.depth[this.focus];
    const alpha = dimmed ? 0.28 : above ? 0.6 : 1;
    ink.globalAlpha = alpha;
    ink.fillStyle = found && !tree.before ? look.foundColor() : look.color(tree, node);
    const gap = width > 3 ? 1 : 0, color = ink.fillStyle;
    if (found) width = Math.max(width, FOUND_MIN);
    ink.fillRect(x, y, width - gap, ROW - 1);
    if (node === this.selected || node === this.hovered) {
      ink.globalAlpha = 1;
      ink.strokeStyle = look.strokeColor();
      ink.lineWidth = node === this.selected ? 2 : 1;
      ink.strokeRect(x + 1, y + 1, Math.max(1, width - gap - 2), ROW - 3);
    }
    if (width < LABEL_MIN) return;
    ink.globalAlpha = dimmed ? 0.8 : 1;
    ink.fillStyle = look.textColor(color, alpha);
    ink.fillText(this.label(frame, node, width - 9), x + 4, y + ROW / 2);
  }

  // Children are sorted by width: from the first one that is too narrow, all of them are one strip.
  drawChildren(node, pending) {
    const {tree} = this, scale = this.width / (this.to - this.from);
    tree.arrange(node);
    const y = this.rowTop(tree.depth[node] + 1), end = tree.first[node + 1];
    if (tree.depth[node] + 1 >= this.shown) {  // beyond the graph's height
      if (tree.recording.found) this.drawHidden(tree.children.subarray(tree.first[node], end), tree.hitsBelow(tree.recording.found), this.rowTop(tree.depth[node]));
      return;
    }
    for (let c = tree.first[node]; c < end; c++) {
      const child = tree.children[c];
      if (tree.left[child] >= this.to || tree.total[child] === 0) return;
      if (tree.left[child] + tree.total[child] <= this.from) continue;
      if (tree.total[child] * scale >= MIN_WIDTH) {
        pending.push(child);
        continue;
      }
      const last = tree.children[end - 1], search = tree.recording.found;
      this.drawStrip(this.toPixel(tree.left[child]),
        this.toPixel(tree.left[last] + tree.total[last]), y);
      if (search) this.drawHidden(tree.children.subarray(c, end), tree.hitsBelow(search), y);
      return;
    }
  }

  // A mark for hits that are among the boxes of a strip, or below them.
  drawHidden(nodes, hits, y) {
    if (y <= -ROW || y >= this.height) return;
    let next = -1;
    this.ink.globalAlpha = 1;
    this.ink.fillStyle = this.look.foundColor();
    for (const node of nodes) {
      const x = this.toPixel(this.tree.left[node]);
      if (x > this.width) return;
      if (!hits[node] || x < next) continue;
      this.ink.fillRect(Math.max(0, x), y, FOUND_MIN, ROW - 1);
      next = x + FOUND_MIN;
    }
  }

  drawStrip(from, to, y) {
    if (y <= -ROW || y >= this.height) return;
    this.ink.globalAlpha = 0.5;
    this.ink.fillStyle = this.look.stripColor();
    const x = Math.max(0, from);
    this.ink.fillRect(x, y, Math.max(MIN_WIDTH, Math.min(this.width, to) - x), ROW - 1);
  }

  label(frame, node, room) {
    if (frame < 0) return this.clip(this.look.rootLabel(this.tree), room);
    const measure = text => this.ink.measureText(text).width;
    const forms = this.tree.recording.nameForms(frame, measure);
    // In a comparison, a shorter name with the change says more than a longer one without.
    const change = changeText(this.tree, node), more = change && ` ${change}`, wide = more && measure(more);
    const whole = more && forms.find(form => form.width + wide <= room);
    if (whole) return whole.text + more;
    const fit = forms.find(form => form.width <= room);
    return fit ? fit.text : this.clip(forms[forms.length - 1].text, room);
  }

  clip(text, room) {
    this.letter ??= this.ink.measureText("m").width;
    const letters = Math.floor(room / this.letter);
    if (text.length <= letters) return text;
    return letters < 3 ? "" : text.slice(0, letters - 1) + "…";
  }

  // ---- moving ----

  // A folded box is opened, any other one is zoomed to.
  enter(node) {
    if (this.tree.isFolded(node)) this.events.unfold(node);
    else this.zoomTo(node);
  }

  // Shows a tree of the same recording with more or fewer boxes folded, with the same zoom. `node`, of
  // the recording, is selected.
  replace(tree, node) {
    const {tree: old, focus} = this;
    let origin = 0;
    for (let i = 1; i < tree.recording.parent.length && focus > 0 && origin === 0; i++) {
      if (old.at(i) === focus) origin = i;
    }
    this.use(tree);
    this.focus = tree.at(origin);
    this.from = tree.leftOf(this.focus);
    this.to = this.from + (tree.total[this.focus] || 1);
    this.resize();
    if (node > 0) this.select(tree.at(node));
  }

  zoomTo(node, remember = true) {
    if (node === this.focus && remember) return;
    if (remember) this.history.push(this.focus);
    this.focus = node;
    this.selected = node > 0 ? node : -1;
    this.resize();
    const {tree} = this, left = tree.leftOf(node);
    this.animate(left, left + (tree.total[node] || 1));
    this.reveal(node);
    this.events.zoomed();
  }

  back() {
    if (this.history.length > 0) this.zoomTo(this.history.pop(), false);
  }

  wholeGraph() {
    this.zoomTo(0, false);
    this.history = [];
    this.events.zoomed();
  }

  animate(from, to) {
    cancelAnimationFrame(this.animation);
    const start = performance.now(), from0 = this.from, to0 = this.to;
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      [this.from, this.to] = [from, to];
      return this.redraw();
    }
    const step = now => {
      const t = Math.min(1, Math.max(0, (now - start) / ZOOM_MS)), ease = 1 - (1 - t) ** 3;
      this.from = from0 + (from - from0) * ease;
      this.to = to0 + (to - to0) * ease;
      this.draw();
      if (t < 1) this.animation = requestAnimationFrame(step);
    };
    this.animation = requestAnimationFrame(step);
  }

  // Scrolls until the node's row is visible, with some rows of its callers.
  reveal(node) {
    const y = this.rowTop(this.tree.depth[node]);
    if (y < 2 * ROW) this.host.scrollTop += y - 2 * ROW;
    if (y > this.height - 3 * ROW) this.host.scrollTop += y - this.height + 3 * ROW;
  }

  select(node) {
    const {tree} = this;
    this.selected = node;
    this.hovered = -1;
    // The node is outside the part that is zoomed to, or too narrow for a row, so the chart zooms to it.
    if (tree.leftOf(node) < this.from || tree.left[node] + tree.total[node] > this.to || tree.depth[node] >= this.shown) {
      if (tree.depth[node] > tree.depth[this.focus]) this.zoomTo(node);
    }
    this.reveal(node);
    this.events.select(node);
    this.redraw();
  }

  move(key) {
    const {tree, selected: node} = this;
    if (!tree) return;
    if (node < 0) return this.select(Math.max(this.focus, this.firstShown()));
    const towardsRoot = key === (this.upward ? "ArrowDown" : "ArrowUp");
    if (key === "ArrowLeft") this.select(tree.sibling(node, -1));
    else if (key === "ArrowRight") this.select(tree.sibling(node, 1));
    else if (!towardsRoot) this.select(tree.widestChild(node));
    else if (tree.depth[node] > this.skip) this.select(tree.parent[node]);
  }

  firstShown() {
    return this.skip > 0 ? this.tree.widestChild(0) : 0;
  }

  nodeUnder(event) {
    const box = this.canvas.getBoundingClientRect(), shift = this.rowTop(this.skip);
    const y = event.clientY - box.top;
    const row = Math.floor((this.upward ? shift + ROW - y : y - shift) / ROW);
    const x = this.from + (event.clientX - box.left) / this.width * (this.to - this.from);
    if (row < 0 || !this.tree || this.tree.total[0] === 0) return -1;
    return this.tree.nodeAt(row + this.skip, x);
  }

  hover(event) {
    const node = event ? this.nodeUnder(event) : -1;
    this.canvas.style.cursor = node >= 0 ? "pointer" : "default";
    this.events.hover(node, event);
    if (node === this.hovered) return;
    this.hovered = node;
    this.redraw();
  }

  listen() {
    this.canvas.addEventListener("mousemove", event => this.hover(event));
    this.canvas.addEventListener("mouseleave", () => this.hover(null));
    this.canvas.addEventListener("click", event => {
      // The second click of a double click is meant for what the first one has hit.
      if (event.detail > 1) return;
      const node = this.clicked = this.nodeUnder(event);
      if (node < 0) return;
      this.opening = this.tree.isFolded(node);
      this.enter(node);
    });
    this.host.addEventListener("scroll", () => { this.hover(null); this.redraw(); });
  }
}
