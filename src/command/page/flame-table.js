// The table of methods: sorted, and filtered by the search. Only the rows that are visible are in
// the document.

const TABLE_ROW = 26;

class MethodTable {
  // events: open(frame), select(frame)
  constructor(host, events) {
    this.host = host;
    this.events = events;
    this.table = document.createElement("table");
    this.head = this.table.createTHead().insertRow();
    this.body = this.table.createTBody();
    this.table.className = "methods";
    host.append(this.table);
    this.wished = null;  // the id of the column to sort by; the first column if none has this id
    this.ascending = false;
    this.active = 0;
    this.rows = [];
    this.stale = true;  // what it shows may not be what there is to show
    this.body.addEventListener("click", event => {
      const row = event.target.closest("tr[data-index]");
      if (!row) return;
      this.activate(Number(row.dataset.index));  // replaces the rows, so there may be no dblclick
      if (event.detail === 2) this.open();
    });
    host.addEventListener("scroll", () => this.render());
    new ResizeObserver(() => this.render()).observe(host);
  }

  // A column: {id, title, value(row) to sort by, text(row)}.
  columns() {
    const {tree} = this, {whole} = tree;
    const share = (id, title) => ({id, title, value: row => row[id],
      text: row => percent(row[id], whole), bar: row => whole > 0 ? row[id] / whole : 0,
      about: row => tree.before ? amount(row[id]) : amountText(row[id], row[`${id}Samples`])});
    const types = tree.recording.kinds.findIndex(([kind]) => kind === "type");
    const title = tree.recording.frameKinds.includes(types) ? "Type, event or method" : "Method";
    const name = {id: "name", title, value: row => tree.recording.names[row.frame],
      text: row => tree.recording.names[row.frame]};
    const module = {id: "module", title: "Module", value: row => tree.recording.modules[row.frame],
      text: row => tree.recording.modules[row.frame]};
    if (!tree.before) {
      const samples = {id: "samples", title: "Samples", value: row => row.selfSamples,
        text: row => number.format(row.selfSamples),
        about: row => `${countText(row.totalSamples, tree.recording.what)} with all that it calls`};
      return [share("self", "Self"), share("total", "Total"), samples, name, module];
    }
    const grown = (id, title, was) => ({id: `${id}Delta`, title,
      value: row => row[id] - row[was],
      text: row => signedPoints(row[id] - row[was], whole),
      about: row => `${amount(row[was])} → ${amount(row[id])}`, delta: true});
    return [grown("self", "Self ±", "selfBefore"), grown("total", "Total ±", "totalBefore"),
      share("selfBefore", "Self before"), share("self", "Self after"),
      share("totalBefore", "Total before"), share("total", "Total after"),
      name, module];
  }

  show(tree) {
    if (this.tree?.recording !== tree.recording) {  // rows hold the recording's frame numbers
      this.rows = [];
      this.active = 0;
      this.host.scrollTop = 0;
    }
    this.tree = tree;
    this.stale = false;
    this.matches = tree.recording.found?.matches;
    this.all = this.columns();
    this.table.classList.toggle("compare", tree.before !== null);
    this.sort();
  }

  // The column to sort by. Not every mode has every column: one that comes back is sorted as
  // before.
  get sorted() {
    const {wished, all} = this, there = all.some(column => column.id === wished);
    return {id: there ? wished : all[0].id, ascending: there && this.ascending};
  }

  // The order as a link has it: null if it is the initial one.
  get order() {
    if (!this.all) return this.wished && (this.ascending ? "" : "-") + this.wished;
    const {id, ascending} = this.sorted;
    return id === this.all[0].id && !ascending ? null : (ascending ? "" : "-") + id;
  }

  set order(text) {
    this.ascending = text !== null && !text.startsWith("-");
    this.wished = text && text.replace(/^-/, "");
  }

  sortOn(id) {
    const {sorted} = this;
    this.ascending = sorted.id === id ? !sorted.ascending : id === "name" || id === "module";
    this.wished = id;
    this.sort();
    this.events.sorted();
  }

  sort() {
    const kept = this.rows[this.active]?.frame;
    const {id, ascending} = this.sorted, {value: key} = this.all.find(column => column.id === id);
    const order = (a, b) => a < b ? -1 : a > b ? 1 : 0;
    this.rows = this.tree.methods().filter(row => !this.matches || this.matches[row.frame]);
    this.rows.sort((a, b) => (ascending ? 1 : -1) * order(key(a), key(b)) ||
      b.total - a.total || a.frame - b.frame);
    this.active = Math.max(0, this.rows.findIndex(row => row.frame === kept));
    this.renderHead();
    this.render();
  }

  renderHead() {
    this.head.replaceChildren(...this.all.map(({id, title}) => {
      const cell = document.createElement("th"), button = document.createElement("button");
      const sorted = id === this.sorted.id, {ascending} = this.sorted;
      cell.setAttribute("aria-sort", !sorted ? "none" : ascending ? "ascending" : "descending");
      cell.className = id;
      button.textContent = title + (sorted ? (ascending ? " ▲" : " ▼") : "");
      if (id === "samples") button.title = "Samples of the method itself";
      else if (id !== "name" && id !== "module") button.title = `Share of ${wholeName()}`;
      button.dataset.column = id;
      button.addEventListener("click", () => {
        this.sortOn(id);
        this.head.querySelector(`[data-column=${id}]`).focus();
      });
      cell.append(button);
      return cell;
    }));
  }

  render() {
    if (!this.tree || this.host.clientHeight === 0) return;
    const first = Math.max(0, Math.floor(this.host.scrollTop / TABLE_ROW) - 5);
    const last = Math.min(this.rows.length,
      first + Math.ceil(this.host.clientHeight / TABLE_ROW) + 10);
    const gap = rows => {
      const row = document.createElement("tr"), cell = row.insertCell();
      row.setAttribute("aria-hidden", "true");
      cell.className = "gap";
      cell.style.height = rows * TABLE_ROW + "px";
      return row;
    };
    const head = this.head.querySelector(".name"), letter = 7.53;  // px, in the style's font of 12.5 px
    this.letters = Math.floor(((head?.clientWidth ?? 0) - 36) / letter);
    const shown = this.rows.slice(first, last).map((row, i) => this.renderRow(row, first + i));
    if (first > 0) shown.unshift(gap(first));
    if (last < this.rows.length) shown.push(gap(this.rows.length - last));
    this.body.replaceChildren(...shown);
    this.table.setAttribute("aria-rowcount", this.rows.length + 1);
  }

  renderRow(row, index) {
    const line = document.createElement("tr");
    line.dataset.index = index;
    line.setAttribute("aria-rowindex", index + 2);
    if (index === this.active) line.setAttribute("aria-selected", "true");
    for (const column of this.all) {
      const cell = line.insertCell();
      cell.textContent = column.id === "name" ? this.fit(column.text(row)) : column.text(row);
      cell.className = column.id;
      if (column.about) cell.title = column.about(row);
      if (column.bar) cell.style.setProperty("--share", `${(100 * column.bar(row)).toFixed(2)}%`);
      if (column.id === "name") {
        const {recording: {kinds, frameKinds}} = this.tree, [kind, label] = kinds[frameKinds[row.frame]];
        const swatch = document.createElement("i");
        swatch.style.background = look.swatch(kind);
        swatch.title = label;
        cell.prepend(swatch);
      }
      if (column.id === "name") cell.title = column.text(row);
      if (column.delta && column.value(row) !== 0) {
        cell.classList.add(column.value(row) > 0 ? "grew" : "shrank");
      }
    }
    return line;
  }

  // The longest form of the name that fits its column, or else the shortest form.
  fit(name) {
    const forms = name.length <= this.letters ? [name] : shortNames(name);
    return forms.find(form => form.length <= this.letters) ?? forms[forms.length - 1];
  }

  activate(index) {
    if (this.rows.length === 0) return;
    this.active = Math.max(0, Math.min(this.rows.length - 1, index));
    const top = this.active * TABLE_ROW, {host} = this, head = 32;
    if (top < host.scrollTop) host.scrollTop = top;
    if (top + TABLE_ROW + head > host.scrollTop + host.clientHeight) {
      host.scrollTop = top + TABLE_ROW + head - host.clientHeight;
    }
    this.render();
    this.events.select(this.rows[this.active].frame);
  }

  open() {
    if (this.rows[this.active]) this.events.open(this.rows[this.active].frame);
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.host.clientHeight / TABLE_ROW) - 2);
    const steps = {ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page, Home: -1e9, End: 1e9};
    if (event.key === "Enter") this.open();
    else if (event.key in steps) this.activate(this.active + steps[event.key]);
    else return false;
    return true;
  }
}
