// SPDX-License-Identifier: MIT
// The colours of an open page, as the colour-blind see them.
"use strict";
const assert = require("assert");
const {evaluate} = require("./browser.js");

// For the colour-blind, too, no two kinds have similar colours, in either theme.
async function testColors() {
  const near = await evaluate(`(() => {
    const ink = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
    const rgb = color => {
      ink.fillStyle = color;
      ink.fillRect(0, 0, 1, 1);
      return [...ink.getImageData(0, 0, 1, 1).data].slice(0, 3).map(v => {
        v /= 255;
        return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
      });
    };
    // Machado, Oliveira, Fernandes (2009): protanopia, deuteranopia.
    const eyes = [[[1, 0, 0], [0, 1, 0], [0, 0, 1]],
      [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
      [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]];
    const lab = ([r, g, b]) => {
      const f = t => t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116;
      const x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505);
      const y = f(0.2126 * r + 0.7152 * g + 0.0722 * b);
      const z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089);
      return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
    };
    const seen = (eye, color) => lab(eye.map(row => Math.max(0, row.reduce(
      (sum, w, i) => sum + w * rgb(color)[i], 0))));
    const near = [], was = look.dark;
    for (const dark of [false, true]) {
      look.dark = dark;
      const kinds = Object.keys(PALETTE).map(kind => [kind, look.swatch(kind)]);
      const pairs = [[["grew", look.delta(0.1)], ["shrank", look.delta(-0.1)]]];
      kinds.forEach((a, i) => kinds.slice(i + 1).forEach(b => pairs.push([a, b])));
      eyes.forEach((eye, e) => pairs.forEach(([a, b]) => {
        const [p, q] = [seen(eye, a[1]), seen(eye, b[1])];
        const distance = Math.hypot(...p.map((v, i) => v - q[i]));
        if (distance < 10) near.push([a[0], b[0], dark, e, Math.round(distance)].join(" "));
      }));
    }
    look.dark = was;
    return near;
  })()`);
  assert.deepStrictEqual(near, [], "colours that cannot be told apart");
}

module.exports = {testColors};
