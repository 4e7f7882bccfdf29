// What surrounds the graph: the recording's facts, the list of threads, the legend, and the box
// that follows the mouse. Text from the recording is only ever assigned to textContent.

// text: a phrase with %s where the value goes. What is of the profiler's own making goes to a panel.
function fact(text, value, title, mood, where = "facts") {
  const item = document.createElement("li"), strong = document.createElement("b");
  const [before, after] = text.split("%s");
  strong.textContent = value;
  item.append(before, strong, after);
  if (title) item.title = title;
  if (mood) item.className = mood;
  $(where).append(item);
  if (where === "facts") $("cost").append(item.cloneNode(true));  // one line may not have room for all of them
}
const ownFact = (text, value, title, mood) => fact(text, value, title, mood, "cost");

const isTimed = f => f.mode === "cpu" || f.mode === "wall";

// Events of the runtime are recorded as they happen, not at a rate.
function modeText(f) {
  return isTimed(f) ? `${f.mode} mode at ${number.format(f.hz)} Hz` : `${f.mode} mode`;
}

// In a comparison: one line for each recording, and for each reason why they differ that is not in the program. A command
// line may be wider than any window.
function fillCompared(diff, after) {
  const whole = f => countsMore(f) ? `, ${number.format(f.weight)} ${f.whole}` :
    f.unit === "count" ? "" : `, ${weightText(f.weight, f.unit)} of ${f.whole}`;
  $("compared").replaceChildren(...[["before", diff.facts], ["after", after]].map(([when, f]) => {
    const item = document.createElement("li"), label = document.createElement("i");
    const count = document.createElement("b");
    label.textContent = when;
    count.textContent = countText(f.events ?? f.samples, f.what) + whole(f);
    const lost = lostOf(f);
    item.append(label, " ", count, ` in ${(f.durationMs / 1000).toFixed(1)} s` +
      `${lost > 0 ? `, ${number.format(lost)} lost` : ""} · ${f.program}`);
    item.title = f.program;
    return item;
  }), ...diff.reasons.map(reason => {
    const item = document.createElement("li");
    item.className = "bad";
    item.textContent = item.title = reason;
    return item;
  }));
}

const lostOf = f => f.lost.target + f.lost.ring + f.lost.broken + f.lost.full;

function fillFacts({facts: f, diff, only, tenthsOff}) {
  const us = ns => (ns / 1000).toFixed(1);
  $("facts").replaceChildren();
  $("cost").replaceChildren();
  $("about").hidden = Boolean(diff);
  $("compared").hidden = !diff;
  if (diff) return fillDiffFacts(f, diff);
  document.title = `${f.program} – clrsnap`;
  $("program").textContent = f.program;
  $("program").title = f.program;
  if (only) fact("only the recording %s has this mode", only, "", "always");
  const count = f.events ?? f.samples;
  fact(`%s ${f.what[count === 1 ? 0 : 1]}`, number.format(count));
  if (f.unit !== "count") fact(`%s of ${f.whole}`, weightText(f.weight, f.unit));
  if (f.mode === "async" && f.scans > 0)
    fact("in %s", countText(f.scans, ["scan", "scans"]),
      `They stand for ${(f.scansNs / 1e9).toFixed(1)} s. With few scans, sums and shares are rough`);
  if (f.nativeThreads > 0)
    fact("without %s that never ran managed code", countText(f.nativeThreads, ["thread", "threads"]),
      "Wall mode samples the threads that the runtime knows; cpu mode samples the others, too");
  if (f.blocked)
    fact("%s without stacks", weightText(f.blocked.weight, f.unit), "Threads ran with their signals blocked: " +
      f.blocked.named.map(([name, weight]) => `${name} ${weightText(weight, f.unit)}`).join(", ") +
      (f.blocked.threads > f.blocked.named.length ? ", and others" : ""), "bad");
  if (countsMore(f)) fact(`%s ${f.whole}`, number.format(f.weight));
  if (count > f.samples)
    fact("%s of them walked", number.format(f.samples), "Chosen at random; each stands for others that are not");
  if (f.mode === "holders")
    fact("for %s, estimated", "time that others waited", "At each observation, a holder stands for all threads that wait for its lock");
  if (f.mode === "lock")
    fact("of %s only", "lock, Monitor, Lock", "Waits for tasks, semaphores, events and the like are in wait mode");
  if (f.mode === "alloc" && f.runtime.startsWith("9."))
    fact("shares %s", "may be far off", ".NET 9 chooses small objects by their count of bytes, not at random. Where the same is " +
      "allocated in turn, a share may be far off, and a type may be missing");
  if (tenthsOff !== null)
    fact("shares %s points", `±${(tenthsOff / 10).toFixed(1)}`, "By so much a share of the whole may be off, idle threads left out (95 %, by " +
      "the number of samples). A share of a selection may be off by more");
  const started = f.startMs ? new Date(f.startMs).toISOString().slice(0, 19).replace("T", " ") : "";
  fact(`in %s, ${modeText(f)}`,
    `${(f.durationMs / 1000).toFixed(1)} s`, started ? `started ${started} UTC` : "");
  if (f.engine) fillEngine(f, f.engine);
  if (f.runtime) fact(".NET %s", f.runtime);
  const lost = lostOf(f);
  ownFact("%s lost", number.format(lost), lost === 0 ? "" :
    `${f.lost.target} in the program, ${f.lost.ring} on the way, ${f.lost.broken} unreadable, ` +
    `${f.lost.full} beyond the call tree's limit`, lost > 0 ? "bad" : "");
  if (f.samples > 0) {
    const whole = Math.floor(1e4 * f.complete / f.samples) / 100;
    ownFact("%s of the stacks complete", `${whole.toFixed(whole === 100 ? 0 : 2)} %`,
      f.stops.map(([token, text, count]) => `${count} × ${token}: ${text}`).join("\n"));
  }
  if (f.held.count > 0) {
    ownFact("threads held %s µs", `${us(f.held.p50)} / ${us(f.held.p99)} / ${us(f.held.max)}`,
      "How long a thread was held for a sample: median, 99th percentile, maximum");
  }
  if (f.suspensions === null) {
    ownFact("runtime stopped %s times", "?", "The agent sent no totals", "bad");
  } else {
    const times = f.suspensions === 1 ? "time" : "times";
    ownFact(`runtime stopped %s ${times}`, number.format(f.suspensions), f.stoppedNs > 0 ?
      `${(f.stoppedNs / 1e6).toFixed(1)} ms in all, at the first attach: threads got larger signal stacks` : "",
      f.suspensions === 0 ? "good" : "");
  }
}

// Which engine made threads take their samples, and, of enough, how many there were per second of CPU time.
function fillEngine(f, e) {
  const known = isTimed(f) && e.cpuNs > 0 && f.samples >= 100, few = known && e.rate < 0.9 * f.hz;
  const others = e.others + e.without > 0 ?
    `${e.others} threads were sampled by another engine, ${e.without} by none` : "";
  const text = [e.unseen, e.why && `not ${e.why}`, others].filter(t => t).join("\n");
  if (!known) return ownFact("engine %s", e.used, text);
  ownFact(`engine ${e.used}, %s Hz reached`, number.format(Math.round(e.rate)), text, few ? "bad" : "");
}

function fillDiffFacts(f, diff) {
  const programs = [...new Set([diff.facts.program, f.program])].join(" → ");
  document.title = `${programs} – clrsnap diff`;
  $("program").textContent = $("program").title = programs;
  fillCompared(diff, f);
  fact("compared in %s", modeText(f));
  fact("%s", {total: "each as a share of its recording, as far as it is shown", rate: "each per second of its recording",
    none: "as recorded, not made comparable"}[diff.normalize]);
  if (f.runtime) fact(".NET %s", diff.facts.runtime === f.runtime ? f.runtime :
    `${diff.facts.runtime} → ${f.runtime}`);
}

// The sentence in place of the graph, which says why there is none.
function emptyText({facts: f, diff}, tree) {
  if (tree.before && tree.after[0] + tree.before[0] > 0) {
    const [none, other] = tree.byBefore ? ["before", "after"] : ["after", "before"];
    return `Nothing ${none}. What was there ${other} is shown if frames are as wide as ${other}.`;
  }
  if (f.samples > 0 || diff?.facts.samples > 0) return "Nothing in this selection.";
  if (f.mode === "async")
    return f.scans > 0 ? `No operation was suspended in any of ${countText(f.scans, ["scan", "scans"])}.` :
      "No scan for suspended operations succeeded.";
  if (f.mode === "wall") return "Nothing was sampled: " + (f.durationMs * f.hz < 2000 ?
    "the recording was too short." : "no thread that runs managed code was found.");
  return isTimed(f) ?
    `Nothing was sampled: the program used too little ${f.mode} time.` :
    `The program caused no events of ${f.mode} mode while it was recorded.`;
}

function threadName(thread) {
  if (thread.name) return thread.tid ? `${thread.name} (${thread.tid})` : thread.name;
  return thread.tid ? `thread ${thread.tid}` : "unknown thread";
}

function fillThreads(recording, chosen) {
  const totals = recording.threadTotals(state.unit, state), all = totals.reduce((a, b) => a + b, 0);
  const shares = document.createElement("optgroup");
  const option = (value, text, where = $("thread")) => where.append(new Option(text, value));
  $("thread").replaceChildren();
  option("all", `all (${recording.threads.length})`);
  if (chosen && chosen.size > 1) option("several", `${chosen.size} threads`);
  totals.map((total, i) => ({total, i})).filter(({total}) => total > 0)
    .sort((a, b) => b.total - a.total || a.i - b.i)
    .forEach(({total, i}) => {
      option(i, `${threadName(recording.threads[i])} – ${percent(total, all)}`, shares);
    });
  shares.label = `shares of ${wholeName(typeof state.route === "number")}`;
  $("thread").append(shares);
  $("thread").value = !chosen ? "all" : chosen.size > 1 ? "several" : [...chosen][0] ?? "all";
}

// The sentence on idle threads, with its switch.
function fillIdle(recording, now) {
  const shown = now.idle;
  $("idle-note").hidden = !recording.idle;
  if (!recording.idle) return;
  const {own, whole, idle, of} = recording.idleTotals(now);
  $("idle-text").textContent = `${shown ? "With" : "Without"} ${amount(own)} of ${amount(whole)} in which ` +
    "threads waited for work (the pool, timers, sockets, files, the runtime itself); " +
    `${number.format(idle)} of ${countText(of, ["thread", "threads"])} did nothing else.`;
  $("idle").textContent = shown ? "Leave idle time out" : "Show idle time";
}

function legendItem(color, text) {
  const item = document.createElement("li"), swatch = document.createElement("i");
  swatch.style.background = color;
  item.append(swatch, text);
  return item;
}

function fillLegend(recording, look) {
  if (recording.diff) {
    return $("legend").replaceChildren(legendItem(look.delta(0.1), "grew"),
      legendItem(look.delta(0.01), "grew a little"), legendItem(look.delta(0), "as before"),
      legendItem(look.delta(-0.01), "shrank a little"), legendItem(look.delta(-0.1), "shrank"));
  }
  const used = new Set(recording.frameKinds), folded = state.fold && recording.folds.any;
  $("legend").replaceChildren(...recording.kinds.flatMap(([kind, text], i) =>
    used.has(i) ? [legendItem(look.swatch(kind), text)] : []),
  ...folded ? [legendItem(look.foldColor(), "▸ folded plumbing")] : []);
}

// One check box for each kind of frame in the recording, one for the frames that only lead to the
// program's code, and one that folds these.
function fillFolds(recording, hide, changed) {
  const used = new Set(recording.frameKinds);
  const kinds = recording.kinds.filter((kind, i) => used.has(i));
  if (recording.plumbing.some(is => is)) {
    kinds.push(["plumbing", "plumbing (host, pool, middleware, async, …)"]);
  }
  const choice = (token, text, checked, change) => {
    const label = document.createElement("label"), box = document.createElement("input");
    box.type = "checkbox";
    box.checked = checked;
    box.dataset.kind = token;
    box.addEventListener("change", () => change(box.checked));
    label.append(box, " ", text);
    return label;
  };
  $("folds").replaceChildren(...kinds.map(([token, text]) =>
    choice(token, text, !hide.has(token), shown => changed(token, !shown))));
  if (!recording.folds.any) return;
  $("folds").append(choice("fold", "fold plumbing into one box each (o)",
    state.fold && recording.folds.opened.size === 0, foldAll));
}

// What is in a folded box.
function foldedText(tree, node) {
  const {recording: rec} = tree;
  const names = [...new Set(rec.folds.inside(tree, node).map(i => rec.frame[i]))].map(frame => {
    const forms = shortNames(rec.names[frame]);
    return forms[Math.min(1, forms.length - 1)];
  });
  return `click to open: ${joined(names.slice(0, 6), names.length - 6)}`;
}

function tooltip(chart, node, event) {
  const box = $("tooltip"), tree = chart?.tree;
  box.hidden = !event || node < 0;
  if (box.hidden) return;
  const title = document.createElement("b"), origin = document.createElement("span");
  const rec = tree.recording, frame = tree.frame[node];
  title.textContent = frameName(tree, node);
  if (node > 0) {
    const kind = rec.kinds[rec.frameKinds[frame]]?.[1];
    origin.textContent = tree.isFolded(node) ? foldedText(tree, node) :
      [rec.modules[frame], kind].filter(text => text !== "").join(" · ");
  }
  const table = document.createElement("table");
  const row = (...cells) => {
    const line = table.insertRow();
    cells.forEach(cell => { line.insertCell().textContent = cell; });
  };
  const {of, samples, ownSamples} = tree, {whole} = of, total = tree.total[node];
  row("total", amountText(total, samples?.[node]), `${percent(total, whole)} of ${wholeName()}`);
  if (of !== tree) row("of the method", "", percent(total, tree.total[0]));
  if (of === tree) {
    row("self", amountText(tree.self[node], ownSamples?.[node]), percent(tree.self[node], whole));
  }
  if (node > 0 && of === tree) {
    row("of its caller", "", percent(total, tree.total[tree.parent[node]]));
  }
  if (chart.focus > 0 && node !== chart.focus) {
    row("of the zoomed frame", "", percent(total, tree.total[chart.focus]));
  }
  if (tree.before) {
    row("before", amount(tree.before[node]), percent(tree.before[node], whole));
    row("after", amount(tree.after[node]), percent(tree.after[node], whole));
    row("change", amount(tree.after[node] - tree.before[node]),
      signedPoints(tree.after[node] - tree.before[node], whole));
  }
  box.replaceChildren(title, origin, table);
  const {width, height} = box.getBoundingClientRect();
  const x = event.clientX + 14, y = event.clientY + 18;
  box.style.left = Math.max(4, Math.min(x, innerWidth - width - 6)) + "px";
  const above = Math.max(4, event.clientY - height - 12);
  box.style.top = (y + height > innerHeight - 6 ? above : y) + "px";
}
