// Routes and traces of labelled samples: a choice of one route, all of them as boxes of their own, and a
// list of the traces that lasted longest.

// The recording's stacks below a frame for the route of each, without the server's frames above its
// delegate: which of them lead there is a matter of chance. What has no route stays as it is.
// Returns the members of a Recording that differ.
function groupByRoute(rec) {
  const builder = new TreeBuilder(rec, 2 * rec.parent.length, {}), known = new Map();
  const node = (at, route) => {
    const path = [];
    let key = 0, place = null;
    for (; at > 0 && !place; at = rec.parent[at]) {
      key = route * rec.parent.length + at;
      place = known.get(key) ?? null;
      if (!place) path.push(at);
    }
    place ??= {node: route > 0 ? builder.child(0, rec.frameCount + route - 1) : 0, below: route === 0};
    while (path.length > 0) {
      at = path.pop();
      const begins = !place.below && rec.names[rec.frame[at]] === `[endpoint] ${rec.routes[route - 1].replace(/ \[\d+\]$/, "")}`;
      place = begins ? {node: builder.child(0, rec.frameCount + route - 1), below: true} :
        {node: builder.child(place.node, rec.frame[at]), below: place.below};
      known.set(route * rec.parent.length + at, place);
    }
    return place.node;
  };
  const entryNode = rec.entryNode.map((at, i) => node(at, rec.entryRoute[i]));
  const parent = builder.parent.slice(0, builder.count), frame = builder.frame.slice(0, builder.count);
  const idle = rec.idle && new Uint8Array(builder.count);
  if (idle) rec.entryNode.forEach((at, i) => { idle[entryNode[i]] = rec.idle[at]; });
  const user = rec.kinds.findIndex(([kind]) => kind === "user"), of = (list, more) =>
    [...list.slice(0, rec.frameCount), ...rec.routes.map(more), ...list.slice(rec.frameCount)];
  return {parent, frame, entryNode, idle, frameCount: rec.frameCount + rec.routes.length,
    names: of(rec.names, name => name), modules: of(rec.modules, () => ""),
    frameKinds: of(rec.frameKinds, () => user), plumbing: of(rec.plumbing, () => false)};
}

// What is shown of routes: "all" together, "each" by itself, or the number of one of them (0: what has
// none).
function readRoute(rec, text) {
  if (!rec.routes || text === null) return rec.usualRoute;
  const number = text === "none" ? 0 : rec.routes.indexOf(text) + 1;
  return text === "each" || text === "all" ? text : number > 0 || text === "none" ? number : rec.usualRoute;
}

const routeText = (rec, route) => typeof route === "string" ? route : route === 0 ? "none" : rec.routes[route - 1];

// The choice of routes, with the share of each.
function fillRoutes(rec, {unit, idle, route}) {
  $("route-field").hidden = !rec.routes;
  if (!rec.routes) return;
  const totals = new Float64Array(rec.routes.length + 1), shares = document.createElement("optgroup");
  rec.entryOwn[unit].forEach((own, i) => { if (idle || !rec.idle?.[rec.entryNode[i]]) totals[rec.entryRoute[i]] += own; });
  const whole = totals.reduce((a, b) => a + b, 0);
  [...totals].map((total, i) => ({total, i})).filter(({total, i}) => total > 0 || i === route)
    .sort((a, b) => b.total - a.total || a.i - b.i)
    .forEach(({total, i}) => shares.append(new Option(`${i > 0 ? rec.routes[i - 1] : "no route"} – ${percent(total, whole)}`, i)));
  shares.label = `one alone; shares of ${wholeName(false)}`;
  $("route").replaceChildren(new Option("all together", "all"), new Option("each by itself", "each"), shares);
  $("route").value = route;
}

// The traces that lasted longest; a click shows one alone, and another click all again.
function fillTraces(rec, chosen, choose) {
  $("traces").hidden = !rec.traces;
  if (!rec.traces) return;
  const head = document.createElement("tr"), {what, whole} = rec;
  const cell = (row, tag, text, title = "") => {
    const item = document.createElement(tag);
    item.textContent = text;
    item.title = title;
    row.append(item);
    return item;
  };
  for (const [text, title] of [["Trace", "Its endpoint"], ["seen for", "From its first sample to its last"],
    ["seen at", "Its first sample"], [rec.unit === "count" ? what[1] : whole, ""], ["id", "For report --trace"]]) cell(head, "th", text, title);
  const rows = rec.traces.map(([route, id, at, length, samples, weight], i) => {
    const row = document.createElement("tr"), button = document.createElement("button");
    button.textContent = route > 0 ? rec.routes[route - 1] : "no route";
    button.setAttribute("aria-pressed", String(chosen === i + 1));
    button.addEventListener("click", () => choose(chosen === i + 1 ? 0 : i + 1));
    cell(row, "td", "").append(button);
    for (const text of [timeText(length, 1), timeText(at, 1), rec.unit === "count" ? number.format(samples) :
      `${weightText(weight, rec.unit)} (${number.format(samples)})`, id]) cell(row, "td", text);
    return row;
  });
  const table = document.createElement("table");
  table.append(head, ...rows);
  $("longest").replaceChildren(table);
}
