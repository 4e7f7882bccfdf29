// SPDX-License-Identifier: MIT
// Drives the flame graph page in a headless Chromium as a person would, with mouse and keys, and checks what the page
// shows. Usage: node page.js CHROMIUM PAGE.html MANY.html DIFF.html MODES.html SERVED.html
// REQUESTS.html BY-ROUTE.html BY-TRACE.html IDLE-DIFF.html RATE-DIFF.html THIN.html WIDER.html. Exit code 0 or 1.
"use strict";
const {run} = require("./browser.js");

// A test may rely on what the tests before it in its file have left on the page.
run(["graph", "colors", "diff", "modes", "sizes", "requests"]
  .flatMap(name => Object.values(require(`./page_${name}.js`))));
