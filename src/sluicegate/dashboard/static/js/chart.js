// One way to make a plot over time: the same axes, cursor, legend, keys and promises for all of them.
import { DASH, clock } from "./format.js";
import { colour } from "./theme.js";

const LEAST_HEIGHT = 120;

const axis = (values, size) => ({
  stroke: colour("quiet"),
  grid: { stroke: colour("grid"), width: 1 },
  ticks: { show: false },
  font: "12px system-ui, sans-serif",
  gap: 6,
  size,
  values,
});

const timeMarks = (u, splits) => {
  const seconds = u.scales.x.max - u.scales.x.min < 600;
  const long = u.scales.x.max - u.scales.x.min > 86_400;
  return splits.map((at) => {
    const moment = new Date(at * 1000);
    if (long) return `${moment.toLocaleDateString("en-GB", { day: "2-digit", month: "short" })} ${clock(at).slice(0, 5)}`;
    return clock(at).slice(0, seconds ? 8 : 5);
  });
};

// Horizontal promises and upright moments, drawn over the plot.
const drawMarks = (u, marks) => {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textAlign = "left";
  ctx.textBaseline = "alphabetic";
  for (const { value, text, stroke } of marks.levels ?? []) {
    const y = Math.round(u.valToPos(value, "y", true));
    ctx.strokeStyle = ctx.fillStyle = stroke;
    ctx.lineWidth = 1.5 * devicePixelRatio;
    ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
    line(ctx, bbox.left, y, bbox.left + bbox.width, y);
    ctx.fillText(text, bbox.left + 6 * devicePixelRatio, y - 5 * devicePixelRatio);
  }
  for (const { at, stroke, dash, share } of marks.moments ?? []) {
    if (at < u.scales.x.min || at > u.scales.x.max) continue;
    const x = Math.round(u.valToPos(at, "x", true));
    ctx.strokeStyle = stroke;
    ctx.lineWidth = 1.5 * devicePixelRatio;
    ctx.setLineDash(dash ? [2 * devicePixelRatio, 3 * devicePixelRatio] : []);
    line(ctx, x, bbox.top + bbox.height * (1 - share), x, bbox.top + bbox.height);
  }
  ctx.restore();
};

const line = (ctx, x1, y1, x2, y2) => {
  ctx.beginPath();
  ctx.moveTo(x1, y1);
  ctx.lineTo(x2, y2);
  ctx.stroke();
};

const moveCursor = (u, step) => {
  const last = u.data[0].length - 1;
  const at = Math.min(Math.max((u.cursor.idx ?? (step > 0 ? -1 : last + 1)) + step, 0), last);
  u.setCursor({ left: u.valToPos(u.data[0][at], "x"), top: u.over.clientHeight / 2 });
};

export class Chart {
  // `series`: label, colour, format(value, place) and how it is drawn; `top`: the least top of the axis.
  constructor(place, { series, bands = [], unit, top = () => 0 }) {
    this.place = place;
    this.marks = {};
    this.spec = { series, bands, unit, top };
    this.data = [[], ...series.map(() => [])];
    place.tabIndex = 0;
    place.setAttribute("role", "img");
    place.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step || !this.plot) return;
      event.preventDefault();
      moveCursor(this.plot, step * (event.shiftKey ? 10 : 1));
    });
    this.resized = new ResizeObserver(() => this.fit());
    this.resized.observe(place);
    this.rebuild = () => this.build();
    document.addEventListener("theme", this.rebuild);
    this.build();
  }

  drop() {
    this.resized.disconnect();
    document.removeEventListener("theme", this.rebuild);
    this.plot.destroy();
  }

  size() {
    const { clientWidth, clientHeight } = this.place;
    const legend = this.place.querySelector(".u-legend")?.offsetHeight ?? 0;
    return { width: Math.max(clientWidth, LEAST_HEIGHT), height: Math.max(clientHeight - legend, LEAST_HEIGHT) };
  }

  build() {
    const { series, bands, unit, top } = this.spec;
    this.plot?.destroy();
    this.plot = new uPlot(
      {
        ...this.size(),
        padding: [10, 22, 0, 0],
        series: [{ label: "at", value: (u, at, n, place) => (place === null ? "now" : clock(at)) }, ...series.map(drawn)],
        bands: bands.map(({ over, name, fill }) => ({ series: over, fill: colour(name, fill) })),
        scales: {
          x: { time: true, range: () => this.span ?? [0, 1] },
          y: { range: (u, low, high) => [0, Math.max((high ?? 0) * 1.12, top(), 1e-9)] },
        },
        axes: [
          { ...axis(timeMarks, 26), space: 76 },
          { ...axis((u, splits) => splits.map(unit), 62), space: 34 },
        ],
        cursor: { sync: { key: "sluicegate" }, y: false, points: { size: 7 }, drag: { x: false, y: false } },
        legend: { live: true },
        hooks: { draw: [(u) => drawMarks(u, this.marks)] },
      },
      this.data,
      this.place,
    );
    // its lines change with the figures in it
    this.resized.observe(this.place.querySelector(".u-legend"));
    this.fit();
  }

  // The place does not grow with the plot, the plot fills the place that its legend leaves.
  fit() {
    const { width, height } = this.size();
    if (width !== this.plot.width || height !== this.plot.height) this.plot.setSize({ width, height });
  }

  show(span, data, marks, told) {
    Object.assign(this, { span, data, marks });
    this.plot.setData(data);
    this.place.setAttribute("aria-label", `${told} Arrow keys move along it.`);
  }
}

// Under the cursor, or without one the last that was measured.
const told = (format) => (u, value, n, place) => {
  const at = place ?? u.data[n].findLastIndex((one) => one !== null && one !== undefined);
  const found = u.data[n][at];
  return found === null || found === undefined ? DASH : format(found, at);
};

const drawn = ({ colour: name, fill, step, dash, width = 2, format, ...rest }) => ({
  value: told(format),
  stroke: colour(name),
  width,
  fill: fill && colour(name, fill),
  dash,
  points: { show: false },
  paths: step ? uPlot.paths.stepped({ align: 1 }) : undefined,
  ...rest,
});
