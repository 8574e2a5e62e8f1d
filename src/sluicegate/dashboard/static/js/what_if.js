// The plan for another load, before it happens: a bar for each load that was planned, a slider over them.
import { byId, html, svg } from "./elements.js";
import { count, rate, seconds } from "./format.js";

const WIDTH = 360;
const HEIGHT = 120;
const FOOT = 18;

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

const bars = (points, nowPerS) => {
  const most = Math.max(...points.map(({ total }) => total ?? 0), 1);
  const step = WIDTH / points.length;
  const height = (total) => ((total ?? 0) / most) * (HEIGHT - FOOT - 14);
  const drawn = points.map(({ total, feasible }, n) =>
    svg("rect", { class: feasible ? "" : "no", x: n * step + 1, y: HEIGHT - FOOT - height(total), width: step - 2, height: height(total), rx: 2 }));
  const next = points.findIndex(({ rate_per_s: r }) => r >= nowPerS);
  const now = next <= 0 ? next : next - (points[next].rate_per_s - nowPerS) / (points[next].rate_per_s - points[next - 1].rate_per_s);
  const at = (now + 0.5) * step;
  const label = nowPerS && now >= 0 ? [
    svg("line", { x1: at, x2: at, y1: 4, y2: HEIGHT - FOOT }),
    svg("text", { x: Math.min(Math.max(at, 14), WIDTH - 14), y: HEIGHT - 4, "text-anchor": "middle" }, "now"),
  ] : [];
  const top = svg("text", { x: 0, y: 11 }, `up to ${count(most, "processor")}`);
  return { drawn, picture: svg("svg", { class: "bars", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": "true" }, ...drawn, ...label, top) };
};

const row = (name, now, then) => {
  const kind = then > now ? "up" : then < now ? "down" : "";
  return html("tr", {},
    html("th", { scope: "row" }, name),
    html("td", { class: "number" }, now === undefined ? "–" : `${now}`),
    html("td", { class: `number ${kind}` }, `${then}`));
};

const table = (point, running) => {
  const names = Object.keys(point.processors ?? {});
  const moved = names.filter((name) => point.processors[name] !== running[name]);
  const listed = names.length > 12 ? moved : names;
  const rest = names.length - listed.length;
  const sum = Object.values(running).reduce((total, k) => total + (k ?? 0), 0);
  return html("table", {},
    html("thead", {}, html("tr", {},
      html("th", { scope: "col" }, "operator"), html("th", { scope: "col", class: "number" }, "processors now"),
      html("th", { scope: "col", class: "number" }, "then"))),
    html("tbody", {}, ...listed.map((name) => row(name, running[name], point.processors[name])),
      rest ? html("tr", {}, html("td", { colspan: 3 }, html("small", {}, `${count(rest, "operator")} as now`))) : null),
    html("tfoot", {}, row("all", sum, point.total)));
};

export class WhatIf {
  // `onPlan` hears the plan that is looked at, or null where that is the present.
  constructor(onPlan) {
    this.onPlan = onPlan;
    this.touched = false;
    this.place = byId("what-if");
    this.slider = html("input", { type: "range", id: "rate", min: 0, step: 1, "aria-label": "Load to plan for" });
    this.slider.addEventListener("input", () => {
      this.touched = true;
      this.chosen = Number(this.slider.value);
      this.showPoint();
    });
    this.ends = html("p", { class: "ends quiet" });
    this.answer = html("div", { "aria-live": "polite" });
    this.picture = html("div");
  }

  show({ what_if: plan, tick, control }) {
    this.points = plan?.points ?? [];
    this.tick = tick ?? {};
    if (!this.points.length) {
      const several = Object.keys(this.tick.operators ?? {}).length > 1 && control && "query_slo" in control;
      const why = several
        ? "No plans for other loads: they are made for applications of one query."
        : "No plans for other loads yet: they come a few looks after the start.";
      this.place.replaceChildren(html("p", { class: "empty" }, why));
      return;
    }
    if (!this.place.contains(this.slider)) this.place.replaceChildren(this.picture, this.slider, this.ends, this.answer);
    this.slider.max = this.points.length - 1;
    if (!this.touched) this.chosen = this.nearest(this.tick.arrivals_per_s);
    this.chosen = Math.min(this.chosen, this.points.length - 1);
    this.slider.value = this.chosen;
    const { drawn, picture } = bars(this.points, this.tick.arrivals_per_s);
    this.drawn = drawn;
    this.picture.replaceChildren(picture);
    this.ends.replaceChildren(...[this.points[0], this.points.at(-1)].map((point) => html("span", {}, rate(point.rate_per_s))));
    this.showPoint();
  }

  nearest(perS) {
    const away = this.points.map(({ rate_per_s: r }) => Math.abs(Math.log(r / (perS || r))));
    return away.indexOf(Math.min(...away));
  }

  showPoint() {
    const point = this.points[this.chosen];
    const now = this.tick.arrivals_per_s;
    const times = now ? `${(point.rate_per_s / now).toFixed(2)} times now` : "";
    this.drawn.forEach((bar, n) => bar.classList.toggle("chosen", n === this.chosen));
    this.slider.setAttribute("aria-valuetext", `${rate(point.rate_per_s)}, ${times}: ${count(point.total, "processor")}`);
    this.answer.replaceChildren(
      html("div", { class: "verdict" },
        html("p", {}, html("strong", {}, rate(point.rate_per_s)), html("span", { class: "quiet" }, `  ${times}`)),
        html("span", { class: `pill ${point.feasible ? "good" : "bad"}` }, point.feasible ? "promise kept" : "cannot be kept")),
      html("p", { class: "why" }, sentence(`expected mean latency ${seconds(point.mean_s)}: ${point.why ?? ""}`)),
      html("div", { class: "rows" }, table(point, this.tick.running ?? {})));
    this.onPlan(this.touched ? point.processors : null);
  }
}
