from __future__ import annotations

from io import StringIO

from rich.console import Console

from sluicegate.cli.fidelity import show
from sluicegate.domain import BatchCosts, Edge, Operator, Topology
from sluicegate.lab.fidelity.fidelity import Fidelity
from sluicegate.lab.fidelity.page import HEADINGS, cells, fidelity_page
from sluicegate.lab.fidelity.settings import Compared, Figures
from sluicegate.lab.fidelity.twin import MeasuredLaw


def found(app: str) -> Fidelity:
    topology = Topology("t", (Operator("work", 10.0, batch=BatchCosts(0.1, 0.01)),), (Edge("source", "work"),))
    law = MeasuredLaw(topology, {"work": 1.0}, {"work": 0.01}, {"work": 0.9})
    settings = tuple(
        Compared(100.0, {"work": k}, Figures(1.1 / k, 2 / k, 10.0 * k), 1.2 / k, Figures(1.0 / k, 1.9 / k, 11.0 * k))
        for k in (1, 2, 4)
    )
    return Fidelity(app, 100.0, law, settings)


def test_every_setting_is_a_dot_and_a_line_of_a_table() -> None:
    page = fidelity_page([found("first"), found("<second>")])
    assert page.count("<circle") == 6
    assert page.count("<tr><td>") == 6
    assert "&lt;second&gt;" in page
    assert "median error of the mean 10.0%; 3 of 3 pairs in the right order" in page


def test_every_cell_stands_under_a_heading_of_its_own_in_the_terminal_too() -> None:
    one = found("first").settings[0]
    assert len(cells(one)) == len(HEADINGS)
    told = StringIO()
    show(found("first"), Console(file=told, width=160))
    lines = [line.split() for line in told.getvalue().splitlines()]
    at = next(i for i, words in enumerate(lines) if words[:2] == ["rows/s", "processors"])
    assert [words[:2] for words in lines[at + 1 : at + 4]] == [["100", "1"], ["100", "2"], ["100", "4"]]


def test_the_page_asks_nobody_for_anything() -> None:
    assert "http" not in fidelity_page([found("first")])
