// The heatmap: a row for each thread and a column for each stretch of time; the darker a cell, the
// more time (or bytes, or samples) it holds. Dragging over it, or Shift with the arrow keys,
// chooses the time and the threads that are looked at.

const HEAT_ROW = 15, HEAT_CELL = 4, HEAT_AXIS = 22;
const TIMELESS = "at times that are not known";

class Heat extends Surface {
  // events: chosen(range or null, threads or null), say(text), left() when the mouse leaves
  constructor(host, look, events) {
    super(host, look, events);
    this.cursor = {column: 0, row: 0};
    this.anchor = null;  // where a drag, or a selection with Shift, began
    this.drag = null;
    this.range = null;        // what is chosen, in ms
    this.threads = null;
    this.listen();
  }

  // marks: [begin, duration, text] in us. unit: what cells are counted in.
  show(recording, marks, {unit, awake, idle, route, trace}) {
    if (recording !== this.recording) {  // the rows belong to the recording's threads
      this.cursor = {column: 0, row: 0};
      this.anchor = this.drag = null;
    }
    this.recording = recording;
    this.marks = [...marks].sort((a, b) => a[0] - b[0]);
    this.unit = unit;
    const totals = recording.threadTotals("samples", {idle, route});
    this.rows = totals.map((total, thread) => ({total, thread})).filter(row => row.total > 0)
      .sort((a, b) => b.total - a.total || a.thread - b.thread);
    this.rows.unshift({total: 0, thread: -1});  // the row of all threads
    this.rowOf = new Map(this.rows.map(({thread}, i) => [thread, i]));
    this.under = recording.found ? recording.matchedNodes(recording.found.matches) : null;
    this.awake = awake;
    this.out = recording.leavesOut({idle, route});
    this.trace = trace;
    this.resize();
  }

  resize() {
    if (!this.recording || this.host.clientWidth === 0) return;
    const rows = HEAT_AXIS + this.rows.length * HEAT_ROW + 3;
    this.host.style.height = `min(${rows}px, 22vh, 157px)`;
    this.fit(HEAT_AXIS + this.rows.length * HEAT_ROW);
    this.labelWidth = this.width < 700 ? 84 : 170;
    this.columns = Math.max(1, Math.floor((this.width - this.labelWidth - 8) / HEAT_CELL));
    this.cursor.column = Math.min(this.cursor.column, this.columns - 1);
    this.count();
    this.draw();
  }

  // A sample that stands for time stands for the time before it, so its weight belongs to all columns that
  // this time covers: no column has more than there was.
  count() {
    const {recording: rec, columns} = this, cells = new Float64Array(columns * this.rows.length);
    const samples = new Float64Array(cells.length), asleep = rec.asleep && new Float64Array(cells.length);
    const perMs = columns / rec.durationMs, skip = rec.skipped(this.awake);
    const counted = this.unit === "samples", isTime = !counted && rec.unit === "us";
    for (let i = 0; i < rec.entry.length; i++) {
      const entry = rec.entry[i];
      if (this.under && !this.under[rec.entryNode[entry]]) continue;
      if (this.out(entry) || (skip >= 0 && rec.asleep[i] === skip)) continue;
      if (this.trace && rec.trace[i] !== this.trace) continue;
      if (rec.timeless[rec.entryThread[entry]]) continue;
      const weight = counted ? 1 : rec.sampleWeight[i], row = this.rowOf.get(rec.entryThread[entry]) * columns;
      const add = (column, part) => {
        for (const at of [column, row + column]) {
          cells[at] += part;
          if (asleep && rec.asleep[i]) asleep[at] += part;
        }
      };
      const column = Math.min(columns - 1, Math.floor(rec.time[i] * perMs));
      samples[column]++;
      samples[row + column]++;
      const end = (rec.time[i] + 1) * perMs, begin = Math.max(0, end - weight / 1000 * perMs);
      if (!isTime || begin >= end) {
        add(column, weight);
        continue;
      }
      for (let c = Math.floor(begin); c < end && c < columns; c++) {
        add(c, weight * (Math.min(end, c + 1) - Math.max(begin, c)) / (end - begin));
      }
    }
    this.cells = cells;
    this.samples = samples;
    this.asleep = asleep;  // of the cells
    this.most = this.largest(columns, cells.length);
    this.mostOfAll = this.largest(0, columns);
  }

  largest(from, to) {
    let most = 1e-9;
    for (let i = from; i < to; i++) if (this.cells[i] > most) most = this.cells[i];
    return most;
  }

  // ---- drawing ----

  draw() {
    if (!this.cells) return;
    const {ink} = this;
    this.clear();
    ink.font = "11px system-ui, sans-serif";
    ink.textBaseline = "middle";
    for (let row = 0; row < this.rows.length; row++) {
      const y = this.rowTop(row);
      if (y > HEAT_AXIS - HEAT_ROW && y < this.height) this.drawRow(row, y);
    }
    this.drawPauses();
    this.drawTimeless();
    this.drawAxis();
    this.drawChosen();
    if (document.activeElement === this.host) this.drawCursor();
  }

  rowTop(row) {
    return HEAT_AXIS + row * HEAT_ROW - this.host.scrollTop;
  }

  drawRow(row, y) {
    const {ink, look} = this, {thread} = this.rows[row];
    const off = this.threads && thread >= 0 && !this.threads.has(thread);
    ink.fillStyle = look.quietColor();
    ink.fillText(this.clip(thread < 0 ? "all threads" : threadName(this.recording.threads[thread])),
      12, y + HEAT_ROW / 2);
    ink.globalAlpha = off ? 0.35 : 1;
    const most = row === 0 ? this.mostOfAll : this.most;
    ink.fillStyle = look.heatGround();
    ink.fillRect(this.labelWidth, y, this.columns * HEAT_CELL, HEAT_ROW - 1);
    for (let c = 0; c < this.columns; c++) {
      const count = this.cells[row * this.columns + c];
      if (count < 0.5) continue;
      // In wall mode, the lower part of a cell is the share that ran, the rest waited.
      const x = this.labelWidth + c * HEAT_CELL, at = row * this.columns + c, tall = HEAT_ROW - 1;
      const ran = this.asleep ? Math.round(tall * (1 - this.asleep[at] / this.cells[at])) : tall;
      ink.fillStyle = ran < tall ? look.waiting(Math.sqrt(count / most)) : look.heat(Math.sqrt(count / most));
      ink.fillRect(x, y, HEAT_CELL, tall);
      if (ran === tall || ran === 0) continue;
      ink.fillStyle = look.heat(Math.sqrt(count / most));
      ink.fillRect(x, y + tall - ran, HEAT_CELL, ran);
    }
    ink.globalAlpha = 1;
  }

  clip(text) {
    const room = this.labelWidth - 18;
    if (this.ink.measureText(text).width <= room) return text;
    while (text.length > 1 && this.ink.measureText(text + "…").width > room) {
      text = text.slice(0, -1);
    }
    return text + "…";
  }

  // Pauses are bands over all rows. Those that share a pixel are one, so that dense ones hide nothing.
  drawPauses() {
    const {ink, look} = this, bands = [];
    for (const [begin, duration] of this.marks) {
      const x = this.toPixel(begin / 1000), end = Math.max(x + 1, this.toPixel((begin + duration) / 1000)), last = bands.at(-1);
      if (last && x < last[1]) last[1] = Math.max(last[1], end);
      else bands.push([x, end]);
    }
    ink.globalAlpha = 0.3;
    ink.fillStyle = look.markColor();
    for (const [x, end] of bands) ink.fillRect(x, HEAT_AXIS, end - x, this.height - HEAT_AXIS);
    ink.globalAlpha = 1;
  }

  // Text lies on a ground of its own: the bands may be as dense as they like.
  drawTimeless() {
    const {ink, look} = this;
    this.rows.forEach(({thread}, row) => {
      const y = this.rowTop(row);
      if (!this.recording.timeless[thread] || y <= HEAT_AXIS - HEAT_ROW || y >= this.height) return;
      ink.fillStyle = look.heatGround();
      ink.fillRect(this.labelWidth, y, ink.measureText(TIMELESS).width + 8, HEAT_ROW - 1);
      ink.fillStyle = look.quietColor();
      ink.fillText(TIMELESS, this.labelWidth + 4, y + HEAT_ROW / 2);
    });
  }

  // How many processors, or threads at a time, a cell's time stands for; null: it is not time.
  processors(value) {
    const {recording: rec} = this, {mode} = rec.facts;
    if (this.unit === "samples" || rec.unit !== "us" || !["cpu", "wall"].includes(mode)) return null;
    const many = value / (1000 * rec.durationMs / this.columns);
    return `${number.format(many)} ${mode === "wall" ? "threads" : many.toFixed(1) === "1.0" ? "processor" : "processors"}`;
  }

  drawAxis() {
    const {ink, look} = this, {durationMs} = this.recording;
    ink.fillStyle = look.pageColor();
    ink.fillRect(0, 0, this.width, HEAT_AXIS);
    const step = niceStep(durationMs / Math.max(2, this.columns * HEAT_CELL / 110));
    ink.fillStyle = look.quietColor();
    for (let ms = 0; ms <= durationMs; ms += step) {
      const x = this.toPixel(ms);
      ink.fillRect(x, HEAT_AXIS - 5, 1, 5);
      if (x + 44 < this.width) ink.fillText(timeText(ms, step), x + 3, 8);
    }
    const most = this.processors(this.mostOfAll);
    if (most) ink.fillText(this.clip(`≤ ${most}`), 10, HEAT_AXIS / 2);
    ink.fillStyle = look.markColor();
    for (const [begin, duration] of this.marks) {
      const x = this.toPixel(begin / 1000);
      ink.fillRect(x, HEAT_AXIS - 6, Math.max(1.5, this.toPixel((begin + duration) / 1000) - x), 6);
    }
  }

  toPixel(ms) {
    return this.labelWidth + ms / this.recording.durationMs * this.columns * HEAT_CELL;
  }

  drawChosen() {
    const range = this.drag ? this.dragged().range : this.range;
    if (!range) return;
    const {ink, look} = this, from = this.toPixel(range[0]), to = this.toPixel(range[1]);
    ink.globalAlpha = 0.62;
    ink.fillStyle = look.pageColor();
    ink.fillRect(this.labelWidth, HEAT_AXIS, from - this.labelWidth, this.height);
    ink.fillRect(to, HEAT_AXIS, this.width - to, this.height);
    ink.globalAlpha = 1;
    ink.strokeStyle = look.accentColor();
    ink.lineWidth = 1.5;
    ink.strokeRect(from, HEAT_AXIS + 0.5, Math.max(1, to - from), this.height - HEAT_AXIS - 1.5);
  }

  drawCursor() {
    const {ink, cursor} = this;
    ink.strokeStyle = this.look.strokeColor();
    ink.lineWidth = 2;
    ink.strokeRect(this.labelWidth + cursor.column * HEAT_CELL - 1, this.rowTop(cursor.row) - 1,
      HEAT_CELL + 2, HEAT_ROW + 1);
  }

  // ---- choosing ----

  cellUnder(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - this.labelWidth) / HEAT_CELL);
    const row = Math.floor((event.clientY - box.top - HEAT_AXIS + this.host.scrollTop) / HEAT_ROW);
    return {column: Math.max(-1, Math.min(this.columns - 1, column)),
      row: Math.max(0, Math.min(this.rows.length - 1, row))};
  }

  // A selection that includes the first row is of all threads; any other is of its rows' threads.
  dragged() {
    const {anchor, cursor} = this, columnMs = this.recording.durationMs / this.columns;
    const [first, last] = [anchor.column, cursor.column].sort((a, b) => a - b);
    const [top, bottom] = [anchor.row, cursor.row].sort((a, b) => a - b);
    const rows = this.rows.slice(top, bottom + 1).map(row => row.thread);
    return {range: [Math.max(0, first) * columnMs, (last + 1) * columnMs],
      threads: top === 0 ? null : new Set(rows)};
  }

  choose(range, threads) {
    this.range = range;
    this.threads = threads;
    this.draw();
    this.events.chosen(range, threads);
  }

  describe() {
    const {cursor, recording: rec} = this, {thread} = this.rows[cursor.row];
    if (rec.timeless[thread]) return `${threadName(rec.threads[thread])} · ${TIMELESS}`;
    const ms = cursor.column * rec.durationMs / this.columns, step = rec.durationMs / this.columns;
    const at = cursor.row * this.columns + Math.max(0, cursor.column);
    const near = this.marks.filter(([begin, duration]) =>
      begin / 1000 < ms + step && (begin + duration) / 1000 >= ms).map(mark => mark[2]);
    return [thread < 0 ? "all threads" : threadName(rec.threads[thread]), timeText(ms, step),
      this.samples[at] > 0 ? amountText(this.cells[at], this.samples[at]) : amount(this.cells[at]), ...[this.processors(this.cells[at])].filter(text => text),
      ...new Set(near)].join(" · ");
  }

  press(event) {
    this.anchor = this.cursor = this.cellUnder(event);
    if (this.cursor.column < 0) {  // on a thread's name: that thread, at any time
      const {thread} = this.rows[this.cursor.row];
      this.cursor = {...this.cursor, column: 0};
      const alone = this.threads?.size === 1 && this.threads.has(thread);
      return this.choose(this.range, thread < 0 || alone ? null : new Set([thread]));
    }
    this.drag = true;
    this.canvas.setPointerCapture(event.pointerId);
    this.draw();
  }

  release() {
    if (!this.drag) return;
    const {range, threads} = this.dragged();
    const still = this.anchor.column === this.cursor.column && this.anchor.row === this.cursor.row;
    this.drag = null;
    if (still && this.range) this.choose(null, null);
    else this.choose(range, threads);
  }

  key(event) {
    const steps = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1],
      PageUp: [-20, 0], PageDown: [20, 0], Home: [-1e9, 0], End: [1e9, 0]};
    const {cursor} = this, clamp = (value, most) => Math.max(0, Math.min(most, value));
    if (event.key === "Enter" || event.key === " ") {
      this.anchor = cursor;
      const {range, threads} = this.dragged();
      this.choose(range, threads);
      return true;
    }
    if (!(event.key in steps)) return false;
    const [right, down] = steps[event.key];
    if (!event.shiftKey) this.anchor = null;
    else this.anchor ??= cursor;
    this.cursor = {column: clamp(cursor.column + right, this.columns - 1),
      row: clamp(cursor.row + down, this.rows.length - 1)};
    const y = this.rowTop(this.cursor.row);
    if (y < HEAT_AXIS) this.host.scrollTop += y - HEAT_AXIS;
    if (y + HEAT_ROW > this.height) this.host.scrollTop += y + HEAT_ROW - this.height;
    if (event.shiftKey) {
      const {range, threads} = this.dragged();
      this.choose(range, threads);
    }
    this.draw();
    this.events.say(this.describe());
    return true;
  }

  listen() {
    this.canvas.addEventListener("pointerdown", event => this.press(event));
    this.canvas.addEventListener("pointermove", event => {
      const cell = this.cellUnder(event);
      if (cell.column < 0 && !this.drag) return;
      this.cursor = cell;
      if (this.drag) this.draw();
      this.events.say(this.describe());
    });
    this.canvas.addEventListener("pointerleave", () => this.events.left());
    this.canvas.addEventListener("pointerup", () => this.release());
    this.host.addEventListener("scroll", () => this.draw());
    this.host.addEventListener("focus", () => this.draw());
    this.host.addEventListener("blur", () => this.draw());
  }
}

// The smallest of 1, 2 and 5 times a power of ten that is at least `least`.
function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map(step => step * power).find(step => step >= least) ?? power * 10;
}

function timeText(ms, step) {
  if (step < 1000 && ms < 1000) return `${Math.round(ms)} ms`;
  const digits = step >= 1000 ? 0 : step >= 100 ? 1 : step >= 10 ? 2 : 3;
  return `${(ms / 1000).toFixed(digits)} s`;
}
