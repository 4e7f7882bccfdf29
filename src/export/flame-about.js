// What stands around the graph: the recording's facts, the list of threads, the legend, and the box
// that follows the mouse. Text from the recording only ever becomes textContent.

// text: with %s where the value goes.
function fact(text, value, title, mood) {
  const item = document.createElement("li"), strong = document.createElement("b");
  const [before, after] = text.split("%s");
  strong.textContent = value;
  item.append(before, strong, after);
  if (title) item.title = title;
  if (mood) item.className = mood;
  $("facts").append(item);
}

function fillFacts() {
  const f = recording.facts, us = ns => (ns / 1000).toFixed(1);
  document.title = `${f.program} – clrsnap`;
  $("program").textContent = f.program;
  $("program").title = f.program;
  fact("%s samples", number.format(f.samples));
  const started = f.startMs ? new Date(f.startMs).toISOString().slice(0, 19).replace("T", " ") : "";
  fact(`in %s, ${f.mode} mode at ${number.format(f.hz)} Hz`,
    `${(f.durationMs / 1000).toFixed(1)} s`, started ? `started ${started} UTC` : "");
  if (f.runtime) fact(".NET %s", f.runtime);
  const lost = f.lost.target + f.lost.ring + f.lost.broken + f.lost.full;
  fact("%s lost", number.format(lost), lost === 0 ? "" :
    `${f.lost.target} in the program, ${f.lost.ring} on the way, ${f.lost.broken} unreadable, ` +
    `${f.lost.full} beyond the call tree's limit`, lost > 0 ? "bad" : "");
  if (f.samples > 0) {
    const whole = Math.floor(1e4 * f.complete / f.samples) / 100;
    fact("%s of the stacks complete", `${whole.toFixed(whole === 100 ? 0 : 2)} %`,
      f.stops.map(([token, text, count]) => `${count} × ${token}: ${text}`).join("\n"));
  }
  if (f.held.count > 0) {
    fact("threads held %s µs", `${us(f.held.p50)} / ${us(f.held.p99)} / ${us(f.held.max)}`,
      "How long a thread stood still for a sample: median, 99th percentile, maximum");
  }
  if (f.suspensions === null) {
    fact("runtime stopped %s times", "?", "The agent sent no totals", "bad");
  } else {
    const times = f.suspensions === 1 ? "time" : "times";
    fact(`runtime stopped %s ${times}`, number.format(f.suspensions), "",
      f.suspensions === 0 ? "good" : "bad");
  }
}

function fillThreads() {
  const totals = recording.threadTotals(), all = totals.reduce((a, b) => a + b, 0);
  const option = (value, text) => $("thread").append(new Option(text, value));
  option(ALL_THREADS, `all, merged (${recording.threads.length})`);
  totals.map((total, i) => ({total, i})).filter(({total}) => total > 0)
    .sort((a, b) => b.total - a.total || a.i - b.i)
    .forEach(({total, i}) => {
      option(i, `${threadName(recording.threads[i])} – ${percent(total, all)}`);
    });
}

function fillLegend() {
  const used = new Set(recording.frameKinds);
  $("legend").replaceChildren(...recording.kinds.flatMap(([kind, text], i) => {
    if (!used.has(i)) return [];
    const item = document.createElement("li"), swatch = document.createElement("i");
    const [hue, saturation, light, dark] = PALETTE[kind];
    swatch.style.background = `hsl(${hue} ${saturation}% ${state.dark ? dark : light}%)`;
    item.append(swatch, text);
    return [item];
  }));
}

function tooltip(node, event) {
  const box = $("tooltip"), v = state.view;
  box.hidden = node < 0;
  if (node < 0) return;
  const title = document.createElement("b"), origin = document.createElement("span");
  title.textContent = frameName(node);
  if (node > 0) {
    const frame = v.frame[node], kind = recording.kinds[recording.frameKinds[frame]][1];
    origin.textContent = [recording.modules[frame], kind].filter(text => text !== "").join(" · ");
  }
  const table = document.createElement("table");
  const row = (...cells) => {
    const line = table.insertRow();
    cells.forEach(cell => { line.insertCell().textContent = cell; });
  };
  row("total", amount(v.total[node]), percent(v.total[node], v.total[0]));
  row("self", amount(v.self[node]), percent(v.self[node], v.total[0]));
  if (node > 0) row("of its caller", "", percent(v.total[node], v.total[v.parent[node]]));
  if (state.focus > 0 && node !== state.focus) {
    row("of the zoomed frame", "", percent(v.total[node], v.total[state.focus]));
  }
  box.replaceChildren(title, origin, table);
  const {width, height} = box.getBoundingClientRect();
  const x = event.clientX + 14, y = event.clientY + 18;
  box.style.left = Math.max(4, Math.min(x, innerWidth - width - 6)) + "px";
  const above = Math.max(4, event.clientY - height - 12);
  box.style.top = (y + height > innerHeight - 6 ? above : y) + "px";
}
