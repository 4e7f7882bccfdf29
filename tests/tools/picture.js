// SPDX-License-Identifier: MIT
// Takes a picture of a page in a headless Chromium. Usage: node picture.js CHROMIUM PAGE.html WHAT PICTURE.png, where WHAT is
// what the page's address has after the #.
"use strict";
const {open, screenshot, send, run} = require("../cli/browser.js");
const [page, what, file] = process.argv.slice(3), WIDTH = 1000, HEIGHT = 560;

run([async function picture() {
  await send("Emulation.setDeviceMetricsOverride", {width: WIDTH, height: HEIGHT, deviceScaleFactor: 1, mobile: false});
  await open(`file://${page}#${encodeURI(what)}`);
  await screenshot(file, WIDTH, HEIGHT);
}]);
