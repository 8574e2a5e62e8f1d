from __future__ import annotations

from pathlib import Path

import pytest

from sluicegate.config.topology_file import read_profile, read_topology
from sluicegate.errors import BadInput

GOOD = """
name = "linear"
[[operators]]
name = "parse"
service_rate_per_s = 310.0
[[operators]]
name = "pi"
service_rate_per_s = 105
stateful = true
[[edges]]
from = "source"
to = "parse"
[[edges]]
from = "parse"
to = "pi"
selectivity = 0.5
"""


def written(folder: Path, text: str, name: str = "t.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_topology_reads_as_it_is_written(tmp_path: Path) -> None:
    topology = read_topology(written(tmp_path, GOOD))
    assert topology.names == ("parse", "pi")
    assert topology.operator("pi").stateful
    assert topology.operator("parse").arrival_scv == 1.0
    assert topology.inner_edges[0].selectivity == 0.5


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (('to = "parse"', 'to = "prase"'), r"unknown operator 'prase' \(did you mean 'parse'\?\)"),
        (('from = "source"', 'from = "pi"'), "no source: add an edge"),
        (("selectivity = 0.5", "selectivity = -0.5"), r"edges 2: selectivity of 'parse' -> 'pi' is -0.5"),
        (('name = "pi"', 'name = "parse"'), "operator 'parse' is there twice"),
        (("service_rate_per_s = 310.0", "service_rate_per_s = 0"), r"operators 1 \(parse\): service_rate_per_s"),
        (("service_rate_per_s = 310.0", ""), r"operators 1 \(parse\): give service_rate_per_s"),
        (("service_rate_per_s = 310.0", 'service_rate_per_s = "fast"'), "give a number"),
        (("service_rate_per_s = 310.0", "service_rate_per_s = true"), "give a number"),
        (("service_rate_per_s = 310.0", "service_rate_per_s = nan"), "give a finite number"),
        (("stateful = true", "statefull = true"), r"unknown key 'statefull': did you mean 'stateful'\?"),
        (("stateful = true", 'stateful = "yes"'), "give true or false"),
        (('name = "linear"', "name = "), "not valid TOML"),
        (('name = "linear"', 'mode = "batch"'), "give one of queue, micro-batch"),
        (('[[edges]]\nfrom = "source"', '[edges]\nfrom = "source"'), "not valid TOML"),
        (('name = "linear"', "operator = 3"), r"unknown key 'operator': did you mean 'operators'\?"),
    ],
)
def test_every_mistake_is_one_line_with_file_place_and_remedy(
    tmp_path: Path, change: tuple[str, str], problem: str
) -> None:
    path = written(tmp_path, GOOD.replace(*change, 1))
    with pytest.raises(BadInput, match=problem) as caught:
        read_topology(path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(path))


def test_a_loop_that_grows_is_refused_when_the_file_is_read(tmp_path: Path) -> None:
    loop = GOOD + '[[edges]]\nfrom = "pi"\nto = "parse"\nselectivity = 2.5\n'
    with pytest.raises(BadInput, match="loop through 'parse', 'pi' has gain"):
        read_topology(written(tmp_path, loop))


def test_an_operator_may_take_its_rate_from_a_profile(tmp_path: Path) -> None:
    written(
        tmp_path, 'task = "xml"\n[[points]]\nthreads = 1\nrate_per_s = 310.0\ncpu = 0.9\nmemory = 0.2\n', "xml.toml"
    )
    path = written(tmp_path, GOOD.replace("service_rate_per_s = 310.0", 'profile = "xml.toml"'))
    parse = read_topology(path).operator("parse")
    assert (parse.service_per_s, parse.cpu, parse.memory) == (310.0, 0.9, 0.2)


@pytest.mark.parametrize(
    ("points", "problem"),
    [
        ("", "points is missing"),
        ("[[points]]\nthreads = 2\nrate_per_s = 3.0\n", "needs a point with threads = 1"),
        ("[[points]]\nthreads = 1.5\nrate_per_s = 3.0\n", "give a whole number"),
        ("[[points]]\nthreads = 1\nrate_per_s = 3.0\ncpu = 95.0\n", "a share of a slot, 0 to 1"),
        ("[[points]]\nthreads = 1\nrate_per_s = -3.0\n", "it must be above 0"),
    ],
)
def test_a_profile_is_checked_as_closely(tmp_path: Path, points: str, problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        read_profile(written(tmp_path, 'task = "xml"\n' + points))


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file"):
        read_topology(tmp_path / "none.toml")
    with pytest.raises(BadInput, match="is a folder"):
        read_topology(tmp_path)
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput, match="not UTF-8"):
        read_topology(tmp_path / "b.toml")


def test_micro_batch_mode_brings_batch_costs(tmp_path: Path) -> None:
    topology = read_topology(written(tmp_path, GOOD.replace('name = "linear"', 'mode = "micro-batch"', 1)))
    costs = topology.operator("parse").batch
    assert costs is not None
    assert costs.overhead_s > 0
    assert topology.name == "t"


def test_sources_may_have_shares(tmp_path: Path) -> None:
    text = (
        GOOD.replace('from = "source"', 'from = "source:clicks"')
        + '[[sources]]\nname = "source:clicks"\nshare = 0.25\n'
    )
    assert read_topology(written(tmp_path, text)).share_of("source:clicks") == 0.25
