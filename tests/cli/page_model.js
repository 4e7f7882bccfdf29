// SPDX-License-Identifier: MIT
// What a page ought to show, computed from the JSON of the same recording without any of the page's own code: for each
// mode its stacks, and their trees, methods and timeline cells.
"use strict";
const fs = require("fs");

const IS_TIME = {nanoseconds: 1000};  // JSON and page have microseconds

function readMode(data) {
  const {strings, frames, threads, facts, diff} = data, own = data.selfUs ?? data.selfWeight;
  const mode = {facts, diff, kinds: data.kinds, only: data.only, stacks: [], samples: [], boxes: [],
    names: [], kindOf: [], threads: threads.map(([name, tid]) => ({name: strings[name], tid}))};
  for (let i = 0; i < frames.length; i += 3) {
    mode.names.push(strings[frames[i]]);
    mode.kindOf.push(data.kinds[frames[i + 2]][0]);
  }
  const at = [{thread: -1, path: []}];
  let time = 0;
  data.parent.forEach((back, i) => {
    const above = at[i + 1 - back];
    const node = back === i + 1 ? {thread: data.frame[i], path: []} :
      {thread: above.thread, path: [...above.path, data.frame[i]]};
    at.push(node);
    const before = diff ? (diff.selfUs ?? diff.selfWeight)[i] * diff.scale.weight : 0;
    if (data.self[i] > 0 || own[i] > 0 || before > 0) {
      mode.stacks.push({...node, samples: data.self[i], weight: own[i], before});
    }
    for (let n = 0, ms = 0; data.time && n < data.self[i]; n++, time++) {
      ms += data.time[time];
      mode.samples.push({thread: node.thread, ms, weight: data.timeWeight[time]});
    }
  });
  return mode;
}

const readModel = file => JSON.parse(fs.readFileSync(file, "utf8")).modes.map(readMode);

function treeOf(paths) {
  const root = {frame: -1, total: 0, before: 0, samples: 0, self: 0, children: new Map()};
  for (const {path, weight, before, samples, own = true} of paths) {
    let node = root;
    node.total += weight;
    node.before += before;
    node.samples += samples;
    for (const frame of path) {
      if (!node.children.has(frame)) {
        node.children.set(frame, {frame, total: 0, before: 0, samples: 0, self: 0, children: new Map()});
      }
      node = node.children.get(frame);
      node.total += weight;
      node.before += before;
      node.samples += samples;
    }
    if (own) node.self += weight;
  }
  return root;
}

// What the fake agent's server has of the framework's plumbing, and the boxes that it folds into.
const PLUMBING = {
  "System.Threading.Thread.StartCallback": "▸ thread start",
  "System.Threading.PortableThreadPool.WorkerThread.WorkerThreadStart": "▸ thread pool",
  "System.Threading.ThreadPoolWorkQueue.Dispatch": "▸ thread pool",
  "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Http.HttpProtocol.ProcessRequests": "▸ Kestrel’s connection",
  "Microsoft.AspNetCore.HostFiltering.HostFilteringMiddleware.Invoke": "▸ middleware",
  "Microsoft.AspNetCore.Routing.EndpointRoutingMiddleware.Invoke": "▸ middleware",
};
const boxOf = (mode, frame, i, path) => PLUMBING[mode.names[frame]] ??
  (i === 0 && mode.kindOf[frame] === "runtime" && path.length > 1 ? "▸ host" : null);

// A path as the flame graph has it: neighbours of one box are one frame, with a number of its own.
function folded(mode, path) {
  const short = [];
  path.forEach((frame, i) => {
    const box = boxOf(mode, frame, i, path);
    if (box && !mode.boxes.includes(box)) mode.boxes.push(box);
    const at = box ? mode.names.length + mode.boxes.indexOf(box) : frame;
    if (!box || short[short.length - 1] !== at) short.push(at);
  });
  return short;
}
const nameOf = (mode, frame) => mode.names[frame] ?? mode.boxes[frame - mode.names.length];

const wholeTree = mode => treeOf(mode.stacks.map(stack => ({...stack, path: folded(mode, stack.path)})));
const through = (mode, frame) => mode.stacks.filter(({path}) => path.includes(frame));
const calleesOf = (mode, frame) => treeOf(through(mode, frame).map(stack =>
  ({...stack, path: stack.path.slice(stack.path.indexOf(frame))})));
const callersOf = (mode, frame) => treeOf(through(mode, frame).map(stack =>
  ({...stack, path: stack.path.slice(0, stack.path.indexOf(frame) + 1).reverse()})));

// For each frame that occurs at all.
function methodsOf(mode) {
  const rows = new Map();
  for (const {path, weight, samples, before} of mode.stacks) {
    new Set(path).forEach(frame => {
      const row = rows.get(frame) ?? {frame, self: 0, total: 0, selfSamples: 0, totalSamples: 0, totalBefore: 0};
      row.total += weight;
      row.totalSamples += samples;
      row.totalBefore += before;
      if (frame === path[path.length - 1]) {
        row.self += weight;
        row.selfSamples += samples;
      }
      rows.set(frame, row);
    });
  }
  return [...rows.values()];
}

// The timeline's cells by row and column; the first row is all threads, then each thread by its samples. Time is
// spread over the columns that it covers, before the end of the sample's millisecond.
function cellsOf(mode, columns) {
  const count = mode.threads.map(() => 0), last = Math.max(0, ...mode.samples.map(({ms}) => ms + 1));
  const duration = Math.max(last, mode.facts.durationMs), cells = new Map();
  mode.samples.forEach(({thread}) => count[thread]++);
  const order = count.map((samples, thread) => ({samples, thread})).filter(({samples}) => samples > 0)
    .sort((a, b) => b.samples - a.samples || a.thread - b.thread).map(({thread}) => thread);
  for (const {thread, ms, weight} of mode.samples) {
    const wide = duration / columns, add = (column, part, samples) => {
      for (const row of [0, order.indexOf(thread) + 1]) {
        const cell = cells.get(`${row},${column}`) ?? {weight: 0, samples: 0};
        cell.weight += part;
        cell.samples += samples;
        cells.set(`${row},${column}`, cell);
      }
    };
    const here = Math.min(columns - 1, Math.floor(ms / wide));
    if (!(mode.facts.unit in IS_TIME) || weight === 0) {
      add(here, weight, 1);
      continue;
    }
    add(here, 0, 1);
    const end = ms + 1, begin = Math.max(0, end - weight / 1000);
    for (let column = 0; column < columns; column++) {
      const shared = Math.min(end, (column + 1) * wide) - Math.max(begin, column * wide);
      if (shared > 0) add(column, weight * shared / (end - begin), 0);
    }
  }
  for (const [key, {weight}] of cells) if (weight < 0.5) cells.delete(key);
  return {rows: order, cells};
}

// ---- Texts, as the page ought to write them ----

function percent(part, whole) {
  if (part > 0 && part < 0.00005 * whole) return "<0.01 %";
  return part === whole ? "100 %" : `${(100 * part / whole).toFixed(2)} %`;
}

function amount({facts}, weight) {
  if (facts.unit === "count") return `${weight.toLocaleString("en-US")} ${facts.what[weight === 1 ? 0 : 1]}`;
  if (facts.unit in IS_TIME) return weight >= 1e6 ? `${(weight / 1e6).toFixed(2)} s` : `${(weight / 1e3).toFixed(2)} ms`;
  const power = weight >= 1e9 ? 3 : weight >= 1e6 ? 2 : weight >= 1e3 ? 1 : 0;
  return `${(weight / 1000 ** power).toFixed(power ? 2 : 0)} ${["bytes", "kB", "MB", "GB"][power]}`;
}

function amountAndSamples(mode, weight, samples) {
  const {unit, what} = mode.facts;
  if (mode.diff || (unit === "count" && weight === samples)) return amount(mode, weight);
  const words = unit === "count" || mode.facts.mode === "gc" ? ["sample", "samples"] : what;  // a pause has two
  return `${amount(mode, weight)} (${samples.toLocaleString("en-US")} ${words[samples === 1 ? 0 : 1]})`;
}

const threadName = ({name, tid}) => name ? (tid ? `${name} (${tid})` : name) : tid ? `thread ${tid}` : "unknown thread";

module.exports = {readModel, wholeTree, calleesOf, callersOf, methodsOf, cellsOf, percent, amount, amountAndSamples,
  threadName, nameOf};
