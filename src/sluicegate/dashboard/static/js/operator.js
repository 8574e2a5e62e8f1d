// One operator closely: its figures now, how busy it was and what waited before it.
import { ask } from "./api.js";
import { Chart } from "./chart.js";
import { byId, html } from "./elements.js";
import { compact, count, rate, rows, seconds, share } from "./format.js";

const scv = (value) => (typeof value === "number" ? value.toFixed(2) : "–");

// Of the topics that an attached query reads: who has nothing to read, and whose rows nobody takes.
const partitions = (topics) => {
  if (!topics) return {};
  const named = ["idle", "stuck"].filter((state) => topics[state]?.length).map((state) => `${state}: ${topics[state].join(", ")}`);
  return { partitions: topics.problem ?? [`${topics.partitions}`, ...named].join(", ") };
};

const facts = (tick, name) => {
  const operator = tick?.operators?.[name] ?? {};
  return {
    ...partitions(tick?.topics?.[name]),
    "in force": count(tick?.running?.[name] ?? null, "processor"),
    "rows arrive": rate(operator.arrivals_per_s),
    "one processor serves": rate(operator.service_per_s),
    "processors busy": share(operator.utilisation),
    "rows waiting": rows(operator.queue_rows),
    "time in it": seconds(operator.sojourn_s),
    "batches start every": seconds(tick?.pace_s?.[name]),
    "variability of arrivals": scv(operator.arrival_scv),
    "variability of service": scv(operator.service_scv),
  };
};

export class OperatorDialog {
  constructor() {
    this.dialog = byId("operator");
  }

  build() {
    if (this.busy) return;
    this.busy = new Chart(byId("operator-busy"), {
      series: [{ label: "busy", colour: "series-1", fill: 14, format: share }], unit: share, top: () => 1,
    });
    this.queue = new Chart(byId("operator-queue"), {
      series: [{ label: "waiting", colour: "series-3", fill: 14, format: rows }], unit: compact, top: () => 10,
    });
  }

  async open(name, run, span) {
    byId("operator-title").textContent = name;
    byId("operator-facts").replaceChildren(
      ...Object.entries(facts(run.tick, name)).map(([what, value]) => html("div", {}, html("dt", {}, what), html("dd", {}, value))));
    this.dialog.showModal();
    this.build();
    if (!run.tick?.operators?.[name]) return; // of another application: its own dashboard has its past
    const series = await ask(`/api/series?operator=${encodeURIComponent(name)}&from=${span[0]}&to=${span[1]}&points=400`);
    const { utilisation, queue_rows: waiting } = series.columns;
    this.busy.show(span, [series.at_s, utilisation], {}, `How busy ${name} was over time.`);
    this.queue.show(span, [series.at_s, waiting], {}, `Rows that waited before ${name} over time.`);
  }
}
