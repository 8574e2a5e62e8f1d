// The plots over time, and the sentence each says to who cannot see it.
import { Chart } from "./chart.js";
import { byId } from "./elements.js";
import { compact, count, length, rate, seconds, share } from "./format.js";
import { colour } from "./theme.js";

const last = (values) => values?.findLast((value) => value !== null) ?? null;
const axisRate = (value) => `${compact(value)}/s`;

const latencySeries = [
  { label: "mean", colour: "series-1", format: seconds },
  { label: "p95", colour: "series-2", format: seconds },
  { label: "predicted mean", colour: "series-9", format: seconds, dash: [3, 4], width: 1.5 },
];
const loadSeries = [
  { label: "arrivals", colour: "series-2", format: rate },
  { label: "throughput", colour: "series-9", format: rate, width: 1.3 },
  { label: "at most", colour: "series-2", format: rate, width: 0.6 },
  { label: "expected", colour: "series-2", format: rate, dash: [5, 4], width: 1.6 },
  { label: "at least", colour: "series-2", format: rate, width: 0.6 },
];

export class Plots {
  constructor() {
    this.bounds = {};
    const highest = () => Math.max(0, ...Object.values(this.bounds)) * 1.25;
    this.latency = new Chart(byId("latency"), { series: latencySeries, unit: length, top: highest });
    this.load = new Chart(byId("load"), { series: loadSeries, bands: [{ over: [3, 5], name: "series-2", fill: 28 }], unit: axisRate });
    this.cpu = new Chart(byId("cpu"), {
      series: [{ label: "busiest node's processor", colour: "series-5", fill: 14, format: share }],
      unit: share,
      top: () => 1,
    });
  }

  show(run, series, span) {
    this.bounds = run.control?.bounds ?? {};
    const moves = run.decisions.map(({ at_s: at }) => ({ at, stroke: colour("accent"), share: 0.07 }));
    const now = { at: run.tick?.at_s ?? span[1], stroke: colour("quiet"), dash: true, share: 1 };
    const moments = [now, ...moves];
    this.showLatency(series, span, moments);
    this.showLoad(series, span, moments, run.tick);
    this.showProcessors(series, span, moments);
    this.cpu.show(span, [series.at_s, series.columns.busiest_cpu], { moments },
      `The busiest node over time; now ${share(last(series.columns.busiest_cpu))}.`);
    byId("cpu").hidden = last(series.columns.busiest_cpu) === null;
  }

  showLatency({ at_s, columns }, span, moments) {
    const strokes = { mean: colour("series-1"), p95: colour("series-2") };
    const levels = Object.entries(this.bounds).map(([what, value]) => ({
      value, text: `${what} promised: ${length(value)}`, stroke: strokes[what] ?? colour("bad"),
    }));
    const promises = levels.map(({ text }) => text).join(", ") || "nothing promised";
    this.latency.show(span, [at_s, columns.mean_s, columns.p95_s, columns.predicted_mean_s], { levels, moments },
      `Latency over time; now mean ${seconds(last(columns.mean_s))}, 95th percentile ${seconds(last(columns.p95_s))}; ${promises}.`);
  }

  showLoad({ at_s, columns }, span, moments, tick) {
    const ahead = forecastAhead(tick);
    const past = (values) => [...values, ...ahead.at_s.map(() => null)];
    // what is expected begins at what is measured now
    const now = ahead.at_s.length ? tick.arrivals_per_s : null;
    const coming = (values) => [...at_s.map((_, n) => (n === at_s.length - 1 ? now : null)), ...values];
    byId("load-note").textContent = ahead.at_s.length
      ? `and what is expected for ${length(ahead.at_s.at(-1) - tick.at_s)}, ${share(tick.forecast.level)} sure`
      : "nothing is forecast";
    this.load.show(
      span,
      [[...at_s, ...ahead.at_s], past(columns.arrivals_per_s), past(columns.throughput_per_s), coming(ahead.high), coming(ahead.mean), coming(ahead.low)],
      { moments },
      `Load over time; now ${rate(last(columns.arrivals_per_s))}, expected next ${rate(ahead.mean[0])}.`,
    );
  }

  showProcessors({ at_s, columns, operators }, span, moments) {
    this.names = operators.map(({ name }) => name);
    if (this.names.join("\n") !== this.drawnNames) this.buildProcessors();
    this.own = operators.map(({ processors }) => processors);
    const totals = stacked(this.own);
    this.processors.show(span, [at_s, ...totals.toReversed(), columns.executors, columns.nodes], { moments },
      `Processors over time, by operator; now ${count(last(totals.at(-1)), "processor")}: `
      + `${operators.map(({ name, processors }) => `${name} ${last(processors)}`).join(", ")}.`);
  }

  // The largest sum is drawn first and the smaller ones over it; the legend tells each operator's own.
  buildProcessors() {
    this.drawnNames = this.names.join("\n");
    byId("processors").replaceChildren();
    const own = (n) => (sum, at) => `${this.own[n][at]}`;
    const areas = this.names.map((label, n) => ({
      label, colour: `series-${(n % 9) + 1}`, fill: 38, step: true, width: 1.2, format: own(n),
    }));
    const lines = [
      { label: "executors", colour: "ink", step: true, width: 2, dash: [6, 3], format: (k) => `${k}` },
      { label: "nodes", colour: "bad", step: true, width: 2, dash: [2, 3], format: (k) => `${k}` },
    ];
    const unit = (value) => (Number.isInteger(value) ? `${value}` : "");
    this.processors?.drop();
    this.processors = new Chart(byId("processors"), { series: [...areas.toReversed(), ...lines], unit, top: () => 4 });
  }
}

const stacked = (own) => {
  let below = own[0]?.map(() => 0) ?? [];
  return own.map((values) => (below = values.map((value, n) => value + below[n])));
};

const forecastAhead = (tick) => {
  const forecast = tick?.forecast;
  if (!forecast?.mean_per_s?.length) return { at_s: [], mean: [], low: [], high: [] };
  return {
    at_s: forecast.mean_per_s.map((_, n) => tick.at_s + (n + 1) * forecast.step_s),
    mean: forecast.mean_per_s,
    low: forecast.low_per_s ?? forecast.mean_per_s,
    high: forecast.high_per_s ?? forecast.mean_per_s,
  };
};

export const aheadOf = (tick) => (forecastAhead(tick).at_s.at(-1) ?? tick?.at_s ?? 0) - (tick?.at_s ?? 0);
