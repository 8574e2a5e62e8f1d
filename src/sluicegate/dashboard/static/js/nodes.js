// The load of each node now, what it hosts, and what happened to executors and nodes.
import { byId, html, meter } from "./elements.js";
import { clock, level, share } from "./format.js";

const cell = (value) => html("td", { class: "measured" }, meter(value, level(value ?? 0)), share(value));
const hosted = (hosts) => Object.entries(hosts ?? {}).map(([name, k]) => `${name} ${k}×`).join(", ") || "–";

// A run on this machine alone has neither: the plots take the room.
const showCard = ({ tick, fleet }) => byId("main").classList.toggle("alone", !tick?.nodes?.length && !fleet.length);

export const showNodes = (run) => {
  const { tick } = run;
  showCard(run);
  const nodes = tick?.nodes ?? [];
  const head = ["node", "cpu", "memory", "io", "runs"].map((name) => html("th", { scope: "col" }, name));
  const row = ({ name, cpu, memory, io, hosts }) =>
    html("tr", {}, html("th", { scope: "row" }, name), cell(cpu), cell(memory), cell(io), html("td", {}, html("small", {}, hosted(hosts))));
  byId("nodes").replaceChildren(html("table", {}, html("thead", {}, html("tr", {}, ...head)), html("tbody", {}, ...nodes.map(row))));
  byId("nodes").hidden = !nodes.length;
};

export const showFleet = ({ fleet }) => {
  const line = ({ at_s, what }) => html("li", {}, html("time", {}, clock(at_s)), what);
  byId("fleet").replaceChildren(...fleet.slice(0, 30).map(line));
  byId("fleet").hidden = !fleet.length;
};
