// Every move with its reasons, newest first. An entry that somebody opened stays open when new ones come.
import { ask } from "./api.js";
import { byId, html } from "./elements.js";
import { clock, day, rate, seconds } from "./format.js";

const move = ({ operator, have, want }) =>
  html("span", {}, `${operator} ${have} `, html("span", { class: want > have ? "up" : "down" }, `→ ${want}`));

// Executors, nodes, places, paces, key groups, shares: what moved besides processors.
const change = ({ what, have, want }) =>
  html("span", {}, ...(have ? [`${what} ${have} `, html("span", {}, `→ ${want}`)] : [`${what}: ${want}`]));

const movesOf = (decision) => [...(decision.rescales ?? []).map(move), ...(decision.changes ?? []).map(change)];

const between = (parts, mark) => parts.flatMap((part, n) => (n ? [mark, part] : [part]));

const listed = (title, lines) =>
  lines.length ? [html("h3", {}, title), html("ul", {}, ...lines.map((text) => html("li", {}, text)))] : [];

const refused = ({ rule, why }) => `${rule}: ${why}`;

const details = (decision) => {
  const seen = [
    `decided ${day(decision.at_s)}`,
    (decision.arrivals_per_s ?? null) === null ? null : `load ${rate(decision.arrivals_per_s)}`,
    (decision.predicted_mean_s ?? null) === null ? null : `expected mean latency ${seconds(decision.predicted_mean_s)}`,
    `then running ${Object.entries(decision.running ?? {}).map(([name, k]) => `${name} ${k}×`).join(", ")}`,
  ].filter(Boolean);
  const moves = [
    ...(decision.rescales ?? []).map(({ operator, reason }) => `${operator}: ${reason}`),
    ...(decision.changes ?? []).map(({ what, reason }) => `${what}: ${reason}`),
  ];
  return html("div", { class: "more" },
    ...listed("Why", decision.reasons ?? []), ...listed("Each move", moves),
    ...listed("Refused", (decision.refusals ?? []).map(refused)), ...listed("Seen", seen));
};

const entry = (decision) => {
  const all = movesOf(decision);
  const moves = between(all.slice(0, 6), ", ");
  const rest = all.length - 6;
  const summary = html("summary", {},
    html("span", { class: "number" }, `#${decision.number}`),
    html("span", { class: "moves" }, ...(moves.length ? moves : ["nothing moved"]), rest > 0 ? ` and ${rest} more` : ""),
    html("time", { datetime: new Date(decision.at_s * 1000).toISOString() }, clock(decision.at_s)),
    html("span", { class: "reason" }, decision.reasons?.[0] ?? decision.changes?.[0]?.reason ?? ""));
  const whole = html("details", { "data-number": decision.number }, summary);
  // what is closed is not built: a long feed stays light
  whole.addEventListener("toggle", () => whole.open && whole.children.length === 1 && whole.append(details(decision)));
  return html("li", {}, whole);
};

export const showFeed = (run) => {
  const list = byId("feed");
  list.replaceChildren(...run.decisions.map(entry));
  if (!run.decisions.length) list.append(html("li", { class: "empty" }, "No move yet."));
  showOlder(run);
};

export const addToFeed = (decision) => {
  byId("feed").querySelector(".empty")?.remove();
  byId("feed").prepend(entry(decision));
};

const showOlder = (run) => {
  const oldest = run.decisions.at(-1)?.number ?? 1;
  byId("older").hidden = run.decisions.length < 50 || oldest <= 1;
};

export const onOlder = async (run) => {
  const older = await ask(`/api/decisions?before=${run.decisions.at(-1).number}`);
  run.decisions.push(...older);
  byId("feed").append(...older.map(entry));
  if (older.length) showOlder(run);
  else byId("older").hidden = true;
};

export const showHeld = ({ tick }) => {
  const held = (tick?.refusals ?? []).map((refusal) => html("li", {}, `held back, ${refused(refusal)}`));
  byId("held").replaceChildren(held.length ? html("ul", { "aria-label": "Moves refused at the last look" }, ...held) : "");
};
