// SPDX-License-Identifier: MIT
// Opens speedscope's own page with a profile in it, in a headless Chromium, and waits until it shows
// each text. Usage: node speedscope.js CHROMIUM INDEX.html PROFILE.js TEXT... Exit code 0 or 1.
"use strict";
const assert = require("assert");
process.env.BROWSER_WEBGL = "1";
const {navigate, evaluate, run} = require("../cli/browser.js");
const [index, profile, ...wanted] = process.argv.slice(3);
const PATIENCE_S = 60; // of a loaded machine; the page says nothing when it is done

async function testShown() {
  await navigate(`file://${index}#localProfilePath=${profile}&view=sandwich`);
  let missing = wanted;
  for (const end = Date.now() + PATIENCE_S * 1000; missing.length > 0 && Date.now() < end;) {
    await new Promise(resolve => setTimeout(resolve, 50));
    const shown = await evaluate("document.body.textContent");
    missing = wanted.filter(text => !shown.includes(text));
  }
  assert.deepStrictEqual(missing, [], "the page does not show these");
}

run([testShown]);
