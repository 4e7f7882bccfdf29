// Numbers as people read them.

const $ = id => document.getElementById(id);
// A frame's width is what its samples stand for, unless samples are chosen.
const USUAL_UNIT = "weight";
const VIEWS = ["flame", "icicle", "sandwich", "methods"];
const number = new Intl.NumberFormat("en-US", {maximumFractionDigits: 1});
const percent = (part, whole) => {
  if (whole <= 0) return "0 %";
  if (part > 0 && part / whole < 0.00005) return "<0.01 %";
  const all = Math.abs(part - whole) <= 1e-9 * whole;  // sums of scaled numbers are rounded
  return (100 * part / whole).toFixed(all ? 0 : 2) + " %";
};
// Percent points, with their sign.
const signedPoints = (change, whole) => {
  const points = whole > 0 ? 100 * change / whole : 0;
  const text = points.toFixed(2);
  if (Number(text) === 0) return "0.00 %";
  return (points > 0 ? "+" : "") + text.replace("-", "−") + " %";
};

// In the units of the text formats.
function bytesText(value) {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let power = 0;
  while (Math.abs(value) >= 1000 && power < units.length - 1) {
    value /= 1000;
    power++;
  }
  return `${value.toFixed(power === 0 ? 0 : 2)} ${units[power]}`;
}

function microsText(us) {
  return Math.abs(us) >= 1e6 ? `${(us / 1e6).toFixed(2)} s` : `${(us / 1e3).toFixed(2)} ms`;
}

function weightText(value, unit) {
  if (unit === "us") return microsText(value);
  if (unit === "ns" || unit === "nanoseconds") return microsText(value / 1000);
  return unit === "bytes" ? bytesText(value) : number.format(value);
}

// Whether weights count something other than samples. Those of page faults do; an exception's
// weight is a number of exceptions, which is what its mode counts anyway.
const countsMore = facts => facts.unit === "count" && facts.what[1] === "samples";

// For example "1 sample", "12 sampled objects".
const countText = (value, [one, several]) => `${number.format(value)} ${value === 1 ? one : several}`;

// A row may stand for several threads of one name: "name, 5 threads".
const threadCount = ({name, tid}) => Number((tid === 0 && /, (\d+) threads$/.exec(name)?.[1]) || 1);

const weightLabel = unit => unit === "us" || unit === "ns" ? "time" : unit;
