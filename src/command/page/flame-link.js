// The page's address records what is looked at, so that a link shows others the same:
// #view=flame&mode=cpu&thread=101,102&unit=time&hide=native,runtime&fold=off&open=12,40&awake=running&idle=on&from=1000&to=2000
// &search=Json&node=17&method=Program.Main&route=each&trace=4bf9...&sort=-total&width=before&heat=off&theme=dark
// A link written by hand may say zoom=NAME for the widest frame of that name, and native=off.

function readLink(text) {
  const wish = new URLSearchParams(text.replace(/^#/, ""));
  const list = name => (wish.get(name) ?? "").split(",").filter(item => item !== "");
  const hide = new Set(list("hide"));
  if (wish.get("native") === "off") ["runtime", "native"].forEach(kind => hide.add(kind));
  const millis = name => wish.has(name) && isFinite(wish.get(name)) ? Number(wish.get(name)) : null;
  const from = millis("from"), to = millis("to"), node = millis("node");
  return {
    view: VIEWS.includes(wish.get("view")) ? wish.get("view") : "icicle",
    mode: wish.get("mode"), threads: list("thread"), hide, search: wish.get("search") ?? "",
    unit: {time: "weight", weight: "weight", samples: "samples"}[wish.get("unit")] ?? null,
    awake: ["running", "waiting"].includes(wish.get("awake")) ? wish.get("awake") : "all",
    idle: wish.get("idle") === "on", fold: wish.get("fold") !== "off",
    open: list("open").map(Number).filter(Number.isInteger),
    range: from !== null && to !== null && from < to ? [from, to] : null,
    route: wish.get("route"), trace: wish.get("trace"),
    node: node === null ? 0 : node, zoom: wish.get("zoom"), method: wish.get("method"),
    sort: wish.get("sort"), width: wish.get("width") === "before" ? "before" : "after",
    heat: wish.get("heat") !== "off",
    theme: ["dark", "light"].includes(wish.get("theme")) ? wish.get("theme") : null,
  };
}

// Writes only what differs from the state at the start.
function writeLink(now) {
  const link = new URLSearchParams();
  const put = (name, value, usual) => {
    if (value !== usual && value !== null && value !== undefined) link.set(name, value);
  };
  put("view", now.view, "icicle");
  put("mode", now.mode, now.firstMode);
  put("thread", now.threads && now.threads.join(","), null);
  put("unit", now.unit, USUAL_UNIT);
  put("hide", [...now.hide].join(","), "");
  put("fold", now.fold ? "on" : "off", "on");
  put("open", now.open.join(","), "");
  put("awake", now.awake, "all");
  put("idle", now.idle ? "on" : "off", "off");
  if (now.range) {
    put("from", String(Math.round(now.range[0] * 1000) / 1000));
    put("to", String(Math.round(now.range[1] * 1000) / 1000));
  }
  put("search", now.search, "");
  put("route", now.route, now.usualRoute);
  put("trace", now.trace, null);
  put("node", now.node, 0);
  put("method", now.method, null);
  put("sort", now.sort, null);
  put("width", now.width, "after");
  put("heat", now.heat ? "on" : "off", "on");
  put("theme", now.theme, null);
  return link.toString();
}
