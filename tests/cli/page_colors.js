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

// WCAG AA: each text of the page has a contrast of 4.5 : 1, as have the texts on boxes of all colours, plain, above a
// zoom and in a search's shade.
async function testContrast() {
  const poor = await evaluate(`(() => {
    const ink = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
    const rgb = color => {
      ink.clearRect(0, 0, 1, 1);
      ink.fillStyle = color;
      ink.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = ink.getImageData(0, 0, 1, 1).data;
      return {of: [r, g, b].map(v => v / 255), alpha: a / 255};
    };
    const over = (color, alpha, under) => color.map((v, i) => alpha * v + (1 - alpha) * under[i]);
    const light = color => color.map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
      .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const contrast = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
    const hex = color => { ink.fillStyle = color; return ink.fillStyle; };
    const poor = [], was = look.dark;
    const need = (what, has) => { if (!(has >= 4.5)) poor.push(what + ": " + has.toFixed(2)); };
    for (const dark of [false, true]) {
      setTheme(dark);
      const page = rgb(look.pageColor()).of, colors = {found: look.foundColor(), folded: look.foldColor()};
      for (let i = -10; i <= 10; i++) colors["change " + i] = look.delta(i / 100);
      for (const kind of Object.keys(PALETTE)) for (let i = 0; i < 60; i++) colors[kind + i] = look.shade(kind, "Name" + i);
      for (const [name, color] of Object.entries(colors)) {
        for (const [alpha, own] of [[1, 1], [0.6, 1], [0.28, 0.8]]) {
          const box = over(rgb(color).of, alpha, page), text = rgb(look.textColor(hex(color), alpha)).of;
          need([name, dark, alpha].join(" "), contrast(over(text, own, box), box));
        }
      }
      for (const text of [look.quietColor(), look.markColor()]) need("timeline " + dark, contrast(rgb(text).of, page));
      let seen = 0;
      for (const element of document.querySelectorAll("header *, footer *, #empty, #tooltip *, .pick, .pick *")) {
        if (!element.checkVisibility() || element.disabled || ![...element.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
        let up = element;
        while (up && rgb(getComputedStyle(up).backgroundColor).alpha < 1) up = up.parentElement;
        need((element.id || element.className || element.tagName) + " " + dark,
          contrast(rgb(getComputedStyle(element).color).of, rgb(getComputedStyle(up).backgroundColor).of));
        seen++;
      }
      if (seen < 15) poor.push("only " + seen + " texts seen");
    }
    setTheme(was);
    return poor;
  })()`);
  assert.deepStrictEqual(poor, [], "texts that are hard to read");
}

module.exports = {testColors, testContrast};
