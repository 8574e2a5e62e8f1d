from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np

from sluicegate.lab.replay.page import pareto, replay_page
from sluicegate.lab.replay.replay import ReplayOptions, TraceReport, replay
from sluicegate.lab.replay.world import DEFAULT_POINTS, PROTOCOLS, truth_of

TRUTH = truth_of(DEFAULT_POINTS)


def options_of(*policies: str) -> ReplayOptions:
    return ReplayOptions(policies, PROTOCOLS["cycle"], runs=1)


def report_of(*policies: str, name: str = "t", steps: int = 200) -> TraceReport:
    load = 100 + 50 * np.sin(np.arange(steps) / 30)
    return replay([(name, load)], TRUTH, options_of(*policies))[0]


def test_every_picture_is_well_formed() -> None:
    names = ("recent-peak", "uncertainty-0", "ds2", "hindsight", "static-peak")
    page = replay_page(options_of(*names), "said", TRUTH, [(report_of(*names), ("sorted",))])
    pictures = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(pictures) == 6
    for picture in pictures:
        assert "nan" not in picture
        ElementTree.fromstring(picture)


def test_names_from_outside_are_escaped() -> None:
    report = report_of("hindsight", name="<script>.csv")
    page = replay_page(options_of("hindsight"), "a < b", TRUTH, [(report, ("x & y",))])
    assert "<script>" not in page
    assert "a &lt; b" in page
    assert "x &amp; y" in page


def test_repairs_notes_and_every_policy_are_on_the_page() -> None:
    names = ("recent-peak", "hindsight")
    page = replay_page(options_of(*names), "said", TRUTH, [(report_of(*names), ("3 gaps",))])
    assert all(text in page for text in ("3 gaps", "needs 32 machines", *names))


def test_one_policy_alone_and_a_short_trace_still_give_a_page() -> None:
    assert "<svg" in replay_page(options_of("hindsight"), "", TRUTH, [(report_of("hindsight", steps=20), ())])


def test_the_frontier_leaves_out_what_nobody_can_run() -> None:
    picture = ElementTree.fromstring(pareto(report_of("hindsight", "static-peak"), 0.995))
    lines = [element for element in picture.iter("polyline") if element.get("class") == "frontier"]
    assert [line.get("points") for line in lines] == [""]
