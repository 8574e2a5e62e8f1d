// The load of each node now, what it hosts, and what happened to executors and nodes.
import { byId, html, meter } from "./elements.js";
import { clock, level, share } from "./format.js";

const cell = (value) => html("td", { class: "measured" }, meter(value, level(value ?? 0)), share(value));
const hosted = (hosts) => Object.entries(hosts ?? {}).map(([name, k]) => `${name} ${k}×`).join(", ") || "–";

export const showNodes = ({ tick }) => {
  const nodes = tick?.nodes ?? [];
  if (!nodes.length) {
    byId("nodes").replaceChildren(html("p", { class: "empty" }, "Nodes are not measured in this run."));
    return;
  }
  const head = ["node", "cpu", "memory", "io", "runs"].map((name) => html("th", { scope: "col" }, name));
  const row = ({ name, cpu, memory, io, hosts }) =>
    html("tr", {}, html("th", { scope: "row" }, name), cell(cpu), cell(memory), cell(io), html("td", {}, html("small", {}, hosted(hosts))));
  byId("nodes").replaceChildren(html("table", {}, html("thead", {}, html("tr", {}, ...head)), html("tbody", {}, ...nodes.map(row))));
};

export const showFleet = ({ fleet }) => {
  const line = ({ at_s, what }) => html("li", {}, html("time", {}, clock(at_s)), what);
  byId("fleet").replaceChildren(...fleet.slice(0, 30).map(line));
  byId("fleet").hidden = !fleet.length;
};
