// Numbers as people read them, each with its unit. What was not measured is a dash.
export const DASH = "–";

const known = (value) => typeof value === "number" && Number.isFinite(value);
const grouped = (value, digits = 0) =>
  value.toLocaleString("en", { minimumFractionDigits: 0, maximumFractionDigits: digits });

const size = (value) => {
  if (value >= 1e9) return `${grouped(value / 1e9, 1)} G`;
  if (value >= 1e6) return `${grouped(value / 1e6, 1)} M`;
  if (value >= 1e5) return `${grouped(value / 1e3)} k`;
  return grouped(value, value < 10 ? 1 : 0);
};

export const compact = (value) => (value >= 1e6 ? `${value / 1e6}M` : value >= 1e3 ? `${value / 1e3}k` : `${value}`);

export const parts = {
  rate: (value) => (known(value) ? [size(value), "rows/s"] : [DASH, ""]),
  rows: (value) => (known(value) ? [size(value), "rows"] : [DASH, ""]),
  seconds: (value) => {
    if (!known(value)) return [DASH, ""];
    if (value === 0) return ["0", "s"];
    if (value < 1) return [grouped(value * 1e3, value < 0.01 ? 1 : 0), "ms"];
    if (value < 120) return [value.toFixed(value < 10 ? 2 : 1), "s"];
    return value < 7200 ? [grouped(value / 60, 1), "min"] : [grouped(value / 3600, 1), "h"];
  },
  share: (value) => (known(value) ? [grouped(value * 100), "%"] : [DASH, ""]),
  count: (value) => (known(value) ? [grouped(value), ""] : [DASH, ""]),
};

const joined = (kind) => (value) => parts[kind](value).filter(Boolean).join(" ");
export const rate = joined("rate");
export const rows = joined("rows");
export const seconds = joined("seconds");
// Lengths that somebody set, or that are told in passing: 5 s, not 5.00 s.
export const length = (value) => seconds(value).replace(/\.0+ /, " ").replace(/(\.\d*?)0+ /, "$1 ");
export const share = (value) => parts.share(value).join("");
export const count = (value, noun) => (known(value) ? `${grouped(value)} ${noun}${value === 1 ? "" : "s"}` : DASH);

export const clock = (atS) => new Date(atS * 1000).toLocaleTimeString("en-GB");
export const day = (atS) => new Date(atS * 1000).toLocaleString("en-GB");

export const level = (busy) => (busy > 0.9 ? "bad" : busy > 0.75 ? "warn" : "good");
