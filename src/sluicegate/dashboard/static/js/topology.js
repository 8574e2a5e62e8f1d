// The pipeline drawn: what runs where in the flow, with its processors, rate, queue and how busy it is.
import { byId, html, svg } from "./elements.js";
import { DASH, count, level, rate, rows, share } from "./format.js";
import { frameOf } from "./frame.js";

const MOST_LETTERS = 21;
const MOST_LETTERS_OF_ENDS = 14;  // of a source or sink: its shape is narrower than an operator's
const short = (name, most = MOST_LETTERS) => (name.length > most ? `${name.slice(0, most - 1)}…` : name);

const operatorBox = (box, frame, open) => {
  const { x, y } = frame.corner(box);
  const { width, height } = frame.box;
  const text = (kind, left, top) => svg("text", { class: kind, x: left, y: top });
  const left = box.stateful ? 18 : 12;
  const shown = {
    k: text("k", width - 12, 50),
    rate: text("", left, 45),
    queue: text("soft", left, 62),
    busyText: text("soft", left, 82),
    busy: svg("rect", { class: "busy", x: left + 64, y: 75, height: 6, rx: 3, width: 0 }),
  };
  const name = svg("text", { class: "name", x: left, y: 23 }, short(box.name));
  const track = svg("rect", { class: "track", x: left + 64, y: 75, height: 6, rx: 3, width: width - left - 76 });
  const group = svg(
    "g",
    { class: "box", transform: `translate(${x} ${y})`, tabindex: 0, role: "button", "data-operator": box.name },
    svg("title", {}, box.name),
    svg("rect", { class: "body", width, height, rx: 10 }),
    box.stateful ? svg("path", { class: "state", d: `M10 0a10 10 0 0 0-10 10v${height - 20}a10 10 0 0 0 10 10h-3v-${height}z` }) : null,
    name, track, ...Object.values(shown),
  );
  group.addEventListener("click", () => open(box.name));
  group.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      open(box.name);
    }
  });
  return { box, group, shown, most: width - left - 76 };
};

const endBox = (box, frame) => {
  const { x, y } = frame.corner(box);
  const { width, height } = frame.end;
  const figure = svg("text", { class: "soft", x: width / 2, y: 36 });
  const group = svg(
    "g",
    { class: "end", transform: `translate(${x} ${y})`, role: "img", "aria-label": `${box.kind} ${box.name}` },
    svg("title", {}, `${box.kind} ${box.name}`),
    svg("rect", { width, height, rx: height / 2 }),
    svg("text", { x: width / 2, y: 19 }, short(box.name, MOST_LETTERS_OF_ENDS)),
    figure,
  );
  return { box, group, figure };
};

export const drawTopology = (drawing, open) => {
  const place = byId("topology");
  const frame = frameOf(drawing, place.clientWidth);
  const tip = svg("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto", markerUnits: "userSpaceOnUse" },
    svg("path", { class: "tip", d: "M0 0L8 4L0 8z" }));
  const arrows = drawing.arrows.map((arrow) => ({
    arrow,
    path: svg("path", { class: arrow.back ? "arrow back" : "arrow", d: frame.path(arrow), "marker-end": "url(#tip)" },
      svg("title", {}, arrow.stream)),
  }));
  const operators = drawing.boxes.filter((b) => b.kind === "operator").map((b) => operatorBox(b, frame, open));
  const ends = drawing.boxes.filter((b) => b.kind !== "operator").map((b) => endBox(b, frame));
  const label = `Topology: ${operators.map(({ box }) => box.name).join(", ")}`;
  const picture = svg(
    "svg",
    { viewBox: `0 0 ${frame.width} ${frame.height}`, width: frame.shownWidth, height: frame.shownHeight, role: "group", "aria-label": label },
    svg("defs", {}, tip),
    ...arrows.map(({ path }) => path),
    ...ends.map(({ group }) => group),
    ...operators.map(({ group }) => group),
  );
  place.replaceChildren(drawing.boxes.length ? picture : html("p", { class: "empty" }, "This pipeline has no operators."));
  return { operators, ends, arrows };
};

const told = (box, k, then, operator) => {
  const planned = then === undefined || then === k ? "" : `, ${then} planned for the load of the slider`;
  return `${box.name}${box.stateful ? ", stateful" : ""}: ${count(k, "processor")}${planned}, ${rate(operator.arrivals_per_s)}, `
    + `${share(operator.utilisation)} busy, ${rows(operator.queue_rows)} waiting. Open details.`;
};

const showOperator = ({ box, group, shown, most }, tick, plan) => {
  const operator = tick.operators?.[box.name] ?? {};
  const k = tick.running?.[box.name] ?? null;
  const then = plan?.[box.name];
  const busy = operator.utilisation;
  shown.k.replaceChildren(`${k ?? DASH}`, then === undefined || then === k ? svg("tspan", { class: "soft" }, " proc.") : svg("tspan", { class: "then" }, ` → ${then}`));
  shown.rate.textContent = rate(operator.arrivals_per_s);
  shown.queue.textContent = `${rows(operator.queue_rows)} waiting`;
  shown.busyText.textContent = `${share(busy)} busy`;
  shown.busy.setAttribute("width", Math.min(busy ?? 0, 1) * most);
  shown.busy.setAttribute("class", `busy ${level(busy ?? 0)}`);
  group.setAttribute("aria-label", told(box, k, then, operator));
};

const showEnds = (ends, tick) => {
  for (const kind of ["source", "sink"]) {
    const alike = ends.filter(({ box }) => box.kind === kind);
    const value = kind === "source" ? tick.arrivals_per_s : tick.throughput_per_s;
    // with several of them only their sum is known
    for (const { figure, box } of alike) figure.textContent = alike.length === 1 && kind === "source" ? rate(value) : box.kind;
  }
};

export const showOnTopology = ({ operators, ends, arrows }, tick, plan) => {
  for (const operator of operators) showOperator(operator, tick, plan);
  showEnds(ends, tick);
  const rates = arrows.map(({ arrow }) => tick.operators?.[arrow.target]?.arrivals_per_s ?? null);
  const most = Math.max(...rates.map((value) => value ?? 0), 1e-9);
  arrows.forEach(({ path }, n) => path.setAttribute("stroke-width", 1.5 + 3 * ((rates[n] ?? 0) / most)));
};
