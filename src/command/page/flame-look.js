// Colours, the same in all parts of the page. The kinds of frames differ in lightness and not in
// hue alone, and a comparison is red and blue, so that colour-blind readers can tell them apart,
// too.

// By kind (see Recording.kinds): hue, saturation, lightness (light theme, dark theme).
const PALETTE = {
  user: [30, 92, 66, 58], framework: [205, 70, 78, 70], dynamic: [300, 42, 68, 62],
  runtime: [172, 48, 48, 41], native: [40, 9, 83, 71], cut: [348, 62, 62, 58],
  type: [52, 88, 72, 64], awaits: [250, 90, 76, 72], kernel: [24, 50, 56, 50],
};

// The colour of a text on a box of that colour ("#rrggbb") and opacity, over a page of that colour:
// black or white, whichever has more contrast, which is at least 4.58 : 1 on any colour.
function inkOn(color, alpha, page) {
  const channels = text => [1, 3, 5].map(i => parseInt(text.slice(i, i + 2), 16) / 255);
  const under = channels(page);
  const [r, g, b] = channels(color).map((v, i) => alpha * v + (1 - alpha) * under[i])
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.1791 ? "#000000" : "#ffffff";
}

class Look {
  constructor() {
    this.dark = false;
    this.rootLabel = () => "";
    this.inks = new Map();
  }

  color(tree, node) {
    if (tree.before) return this.deltaColor(tree, node);
    const frame = tree.frame[node], rec = tree.recording;
    if (frame < 0) return this.dark ? "#5b636e" : "#c9c5bd";
    if (tree.isFolded(node)) return this.foldColor();
    const known = rec.colors[this.dark ? "dark" : "light"];
    return known[frame] ??= this.shade(rec.kinds[rec.frameKinds[frame]][0], rec.names[frame]);
  }

  // One hue per kind; a lightness derived from the name sets neighbours apart.
  shade(kind, name) {
    let hash = 0;
    for (let i = 0; i < name.length; i++) hash = Math.imul(hash, 31) + name.charCodeAt(i) | 0;
    const [hue, saturation, light, dark] = PALETTE[kind];
    const tilt = (hash >>> 16) % 7 - 3, lift = (hash >>> 8) % 9 - 4;
    return `hsl(${hue + tilt} ${saturation}% ${(this.dark ? dark : light) + lift}%)`;
  }

  swatch(kind) {
    const [hue, saturation, light, dark] = PALETTE[kind];
    return `hsl(${hue} ${saturation}% ${this.dark ? dark : light}%)`;
  }

  // Red if the node grew, blue if it shrank; in full colour from a tenth of the whole.
  deltaColor(tree, node) {
    const change = tree.after[node] - tree.before[node];
    const {whole} = tree.of;
    return this.delta(whole > 0 ? change / whole : 0);
  }

  delta(change) {
    const strength = Math.min(1, Math.sqrt(Math.abs(change) / 0.1));
    if (strength < 0.05) return this.dark ? "#7d848d" : "#e3e0da";
    const [hue, saturation] = change > 0 ? [8, 85] : [214, 80];
    const light = this.dark ? 66 - 10 * strength : 88 - 26 * strength;
    return `hsl(${hue} ${saturation * (0.4 + 0.6 * strength)}% ${light}%)`;
  }

  heat(share) {
    return this.dark ? `hsl(${28 + 20 * share} 90% ${14 + 58 * share}%)` :
      `hsl(${38 - 22 * share} 88% ${90 - 58 * share}%)`;
  }

  // The same for time asleep.
  waiting(share) {
    return this.dark ? `hsl(212 38% ${20 + 40 * share}%)` : `hsl(212 40% ${91 - 45 * share}%)`;
  }

  foldColor() { return this.dark ? "hsl(210 13% 27%)" : "hsl(210 20% 89%)"; }
  foundColor() { return this.dark ? "#f25fd0" : "#e04fbf"; }
  strokeColor() { return this.dark ? "#ffffff" : "#000000"; }
  // Of a text on a box: `color` is what the canvas has made of the box's colour.
  textColor(color, alpha) {
    const key = color + alpha + this.dark;
    if (!this.inks.has(key)) this.inks.set(key, inkOn(color, alpha, this.pageColor()));
    return this.inks.get(key);
  }
  stripColor() { return this.dark ? "#4a525c" : "#cfcac2"; }
  pageColor() { return this.dark ? "#14171b" : "#fbfaf8"; }
  quietColor() { return this.dark ? "#aab2bc" : "#5a616a"; }
  heatGround() { return this.dark ? "#1b1f25" : "#f1efeb"; }
  accentColor() { return this.dark ? "#f0a05a" : "#a84c18"; }
  markColor() { return this.dark ? "#7fb2ff" : "#1f5fbf"; }
}
