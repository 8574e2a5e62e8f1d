"""The script of a run's page: a line through all charts at the pointer, and the figures of that moment."""

from __future__ import annotations

import json

from sluicegate.report.figures import clock, rate, seconds
from sluicegate.report.run_figures import thinned
from sluicegate.runlog.run_record import Line, RunRecord, measured_s

_SCRIPT = """
const looks = JSON.parse(document.getElementById("looks").textContent);
const readout = document.getElementById("readout");
const pictures = [...document.querySelectorAll("svg.time")];
function hair(svg) {
  if (!svg.hair) {
    svg.hair = svg.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "line"));
    svg.hair.setAttribute("class", "hair");
    svg.hair.setAttribute("y1", 0);
    svg.hair.setAttribute("y2", svg.viewBox.baseVal.height - 30);
  }
  return svg.hair;
}
function show(svg, event) {
  const box = svg.getBoundingClientRect(), d = svg.dataset;
  const at = (event.clientX - box.left) * svg.viewBox.baseVal.width / box.width;
  const time = d.end * Math.min(Math.max((at - d.from) / (d.to - d.from), 0), 1);
  const look = looks.reduce((best, one) => Math.abs(one[0] - time) < Math.abs(best[0] - time) ? one : best);
  for (const other of pictures) {
    const o = other.dataset, x = +o.from + look[0] / o.end * (o.to - o.from);
    hair(other).setAttribute("x1", x);
    hair(other).setAttribute("x2", x);
    hair(other).style.display = "";
  }
  readout.textContent = look[1];
  readout.hidden = false;
}
function hide() {
  for (const svg of pictures) hair(svg).style.display = "none";
  readout.hidden = true;
}
for (const svg of pictures) {
  svg.addEventListener("pointermove", event => show(svg, event));
  svg.addEventListener("pointerdown", event => show(svg, event));
  svg.addEventListener("pointerleave", hide);
}
"""


def run_script(record: RunRecord) -> str:
    """The readout element, the figures as JSON, and the script that follows the pointer."""
    looks = [[round(tick["at_s"] - record.began_s, 1), _said(tick, record.began_s)] for tick in thinned(record.ticks)]
    data = json.dumps(looks).replace("<", "\\u003c")
    return (
        '<div id="readout" role="status" hidden></div>'
        f'<script type="application/json" id="looks">{data}</script><script>{_SCRIPT}</script>'
    )


def _said(tick: Line, began_s: float) -> str:
    came, backlog = tick.get("arrivals_per_s"), tick.get("backlog_rows")
    parts = [
        clock(tick["at_s"] - began_s),
        rate(came) if came is not None else "-",
        f"mean {seconds(measured_s(tick))}, p95 {seconds(measured_s(tick, 'p95'))}",
        f"{backlog:,.0f} rows wait" if backlog is not None else "",
        ", ".join(f"{name} {k}" for name, k in tick["running"].items()),
    ]
    return "  |  ".join(part for part in parts if part)
