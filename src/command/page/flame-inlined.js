// Where the methods that a search finds were inlined, as far as the recording knows.

const MOST_METHODS = 3, MOST_HOSTS = 4;
const isInlined = name => name.endsWith(" (inlined)");
// A frame's method, without its line.
const methodOf = name => name.replace(/ \(inlined\)$/, "").replace(/ \([^()]*:\d+\)$/, "");

// method -> host -> weight: the methods that match, each with the methods whose machine code holds
// it. A host without samples of the method has 0. tree: without hidden frames, which may be hosts.
function inliningOf(tree, {regex, matches}) {
  const {recording: rec, parent, frame, total} = tree, into = new Map(), pairs = [];
  const hostsOf = method => into.get(method) ?? into.set(method, new Map()).get(method);
  for (const [method, host] of rec.inlining) if (regex.test(method)) hostsOf(method).set(host, 0);
  const methods = rec.names.map((name, i) =>
    isInlined(name) && (matches[i] || regex.test(methodOf(name))) ? methodOf(name) : "");
  for (let i = 1; i < tree.count; i++) {
    const method = methods[frame[i]];
    if (!method) continue;
    let up = parent[i], nested = false;
    while (up > 0 && isInlined(rec.names[frame[up]])) up = parent[up];
    if (up === 0) continue;
    const host = methodOf(rec.names[frame[up]]), pair = pairs[i] = `${method}\n${host}`;
    // A stack that has the pair twice counts once.
    for (let at = parent[i]; at > 0 && !nested; at = parent[at]) nested = pairs[at] === pair;
    if (!nested) hostsOf(method).set(host, (hostsOf(method).get(host) ?? 0) + total[i]);
  }
  return into;
}

const joined = (texts, others) => others > 0 ? `${texts.join(", ")} and ${number.format(others)} more` :
  texts.length > 1 ? `${texts.slice(0, -1).join(", ")} and ${texts[texts.length - 1]}` : texts[0];

// "Deep was inlined into Hot (54.00 %) and Cold (no samples of it)", or "".
function inlinedText(tree, found) {
  const sum = hosts => [...hosts.values()].reduce((a, b) => a + b, 0);
  const all = [...inliningOf(tree, found)].sort((a, b) => sum(b[1]) - sum(a[1]));
  const texts = all.slice(0, MOST_METHODS).map(([method, into]) => {
    const hosts = [...into].sort((a, b) => b[1] - a[1]).map(([host, weight]) =>
      `${host} (${weight > 0 ? percent(weight, tree.whole) : "no samples of it"})`);
    return `${method} was inlined into ${joined(hosts.slice(0, MOST_HOSTS), hosts.length - MOST_HOSTS)}. `;
  });
  const more = all.length - texts.length;
  return texts.join("") + (more > 0 ? `${number.format(more)} more methods that match were inlined. ` : "");
}
