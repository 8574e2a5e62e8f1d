"""The page on measured capacity: the measured sizes with their samples, both models, the interval of the chosen one."""

from __future__ import annotations

from html import escape

from sluicegate.config.capacity_file import CapacityFile
from sluicegate.model.mst import choose_model, fit_model
from sluicegate.model.mst_samples import samples_of
from sluicegate.report.page import Frame, area, line, page, round_ticks

_95 = 1.96
_STYLE = """
.m1 { stroke: var(--s0); } .m2 { stroke: var(--s2); stroke-dasharray: 6 4; } .band { fill: var(--s0); opacity: .14; }
.dot { fill: var(--ink); } .judge { fill: none; stroke: var(--s2); stroke-width: 1.6; }
.beyond { fill: var(--load); opacity: .25; }
"""


def mst_page(file: CapacityFile) -> str:
    """The whole HTML text.

    >>> from sluicegate.config.capacity_file import CapacityPoint
    >>> text = mst_page(CapacityFile((CapacityPoint(1, 90.0, 4.0), CapacityPoint(2, 150.0, 5.0)), app="grep"))
    >>> "grep" in text, "extrapolated" in text, "http" in text
    (True, True, False)
    """
    training = file.samples("training") or tuple((p.machines, p.rate_per_s) for p in file.points)
    judges, largest = file.samples("validation"), 2 * max(point.machines for point in file.points)
    chosen = choose_model(training, judges, largest=largest)
    one, two = (fit_model(samples_of(training), form, largest) for form in (1, 2))
    sizes = range(1, largest + 1)
    measured = max(m for m, _ in training)
    frame = Frame(height=360, bottom=40)
    high = max(max(m.mean_per_s(n) for n in sizes for m in (one, two)), *(p.rate_per_s for p in file.points))
    x, y = frame.x(0.5, largest + 0.5), frame.y(0.0, 1.1 * high)
    half = _95 * chosen.sd_per_s
    means = [(float(n), chosen.mean_per_s(n)) for n in sizes]
    parts = [
        f'<rect class="beyond" x="{x.at(measured + 0.5):.1f}" y="{frame.top}" '
        f'width="{x.end - x.at(measured + 0.5):.1f}" height="{y.start - frame.top:.1f}"/>',
        frame.rows(y, round_ticks(y.high), lambda v: f"{v:,.0f}"),
        area(x, y, [(n, v + half) for n, v in means], [(n, max(v - half, 0.0)) for n, v in means], "band"),
        line(x, y, [(float(n), one.mean_per_s(n)) for n in sizes], "m1"),
        line(x, y, [(float(n), two.mean_per_s(n)) for n in sizes], "m2"),
        *(f'<circle class="dot" cx="{x.at(m):.1f}" cy="{y.at(rate):.1f}" r="3"/>' for m, rate in training),
        *(f'<circle class="judge" cx="{x.at(m):.1f}" cy="{y.at(rate):.1f}" r="4"/>' for m, rate in judges),
        *(
            f'<text class="small" x="{x.at(n):.1f}" y="{frame.height - 18}" text-anchor="middle">{n}</text>'
            for n in sizes
            if largest <= 16 or n % (largest // 16 + 1) == 0
        ),
        f'<text class="small" x="{frame.width / 2}" y="{frame.height - 3}" text-anchor="middle">nodes</text>',
    ]
    rows = "".join(
        f"<tr><td>{p.machines}</td><td>{p.rate_per_s:,.1f}</td><td>{p.sd_per_s:,.1f}</td>"
        f"<td>{one.mean_per_s(p.machines):,.1f}</td><td>{two.mean_per_s(p.machines):,.1f}</td><td>{p.use}</td></tr>"
        for p in file.points
    )
    about = "".join(f"<p>{escape(text)}</p>" for text in file.assumed)
    facts = ", ".join(f"{key} {value}" for key, value in {**file.machine, **file.versions}.items())
    body = (
        f"<h1>{escape(file.app or 'Throughput')}: what nodes sustain</h1>"
        f"<p>Rows a second flat out. Model {chosen.form} was chosen; the band is its 95% interval (sd "
        f"{chosen.sd_per_s:,.1f} rows/s). Grey: extrapolated, beyond the largest size trained on ({measured}).</p>"
        '<p><span class="key" style="background: var(--s0)"></span>model 1 <span class="key" style="background: '
        'var(--s2)"></span>model 2 (dashed); dots are samples, rings those that decided between the models</p>'
        f"{frame.picture(parts, 'Throughput over nodes')}"
        '<div class="wide"><table><tr><th>nodes</th><th>measured rows/s</th><th>sd</th><th>model 1</th><th>model 2</th>'
        f"<th>used for</th></tr>{rows}</table></div>{about}<p>Measured {escape(file.measured)}: {escape(facts)}</p>"
    )
    return page(f"{file.app} on nodes", _STYLE, body)
