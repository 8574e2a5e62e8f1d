// The figures of this moment.
import { byId, html } from "./elements.js";
import { count, length, parts, rate } from "./format.js";

const total = (running) => Object.values(running ?? {}).reduce((sum, k) => sum + (k ?? 0), 0);

const promised = (measured, bound, without) => {
  if (bound === undefined || bound === null) return { note: without, kind: "" };
  if (measured === null || measured === undefined) return { note: `promised ${length(bound)}`, kind: "" };
  const kept = measured <= bound;
  return { note: `${kept ? "within" : "beyond"} ${length(bound)} promised`, kind: kept ? "good" : "bad" };
};

const tile = (title, [figure, unit], note, kind = "") =>
  html(
    "div",
    { class: `tile ${kind}` },
    html("h3", {}, title),
    html("p", { class: "figure" }, figure, unit ? html("small", {}, unit) : ""),
    html("p", { class: "note" }, note),
  );

const latency = (title, measured, bound, without = "nothing promised") => {
  const { note, kind } = promised(measured, bound, without);
  return tile(title, parts.seconds(measured), note, kind);
};

// Shown where they are promised.
const RARELY = { p50: "Median latency", p99: "99th percentile" };

export const showTiles = (run) => {
  const tick = run.tick ?? {};
  const sojourn = tick.sojourn ?? {};
  const bounds = run.control?.bounds ?? {};
  const without = Object.keys(run.control?.query_slo ?? {}).length ? "promised by query" : "nothing promised";
  const next = tick.forecast?.mean_per_s?.[0];
  const budget = run.control?.budget;
  const nodes = tick.nodes?.length ? tick.nodes.length : null;
  byId("tiles").replaceChildren(
    latency("Mean latency", sojourn.mean_s, bounds.mean, without),
    latency("95th percentile", sojourn.p95_s, bounds.p95, without),
    ...Object.keys(RARELY).filter((what) => what in bounds).map((what) => latency(RARELY[what], sojourn[`${what}_s`], bounds[what])),
    tile("Load", parts.rate(tick.arrivals_per_s), next === undefined ? "no forecast" : `${rate(next)} expected`),
    tile("Backlog", parts.rows(tick.backlog_rows), "taken in, not yet out"),
    tile("Processors", parts.count(run.tick ? total(tick.running) : null), budget ? `of ${budget} there are` : "no budget set"),
    tile("Executors", parts.count(tick.executors), nodes === null ? "nodes not measured" : `on ${count(nodes, "node")}`),
    tile("Decisions", parts.count(run.decisions_made), `${count(Math.round(run.slot_seconds / 60), "slot-minute")} used`),
  );
};
