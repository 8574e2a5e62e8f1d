"""The pages on the models: their examples give what they print, and what they name is there."""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from sluicegate.forecast.catalogue import FORECASTERS
from sluicegate.place.catalogue import PLACERS
from sluicegate.policy.catalogue import POLICIES

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "sluicegate"
MODELS = ROOT / "docs" / "models"
INDEX = MODELS / "index.md"
ARCHITECTURE = ROOT / "docs" / "architecture.md"
OF_THE_CODE = ("architecture", "contributing", "design")
AN_EXAMPLE = "policy/peers/sixty.py"
PAGES = sorted(MODELS.glob("*.md"))
EVERY_PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def examples(page: Path) -> doctest.DocTest:
    """All ``>>>`` blocks of a page, in order and in one namespace."""
    blocks = [
        block for block in re.findall(r"^```python\n(.*?)^```$", text(page), re.DOTALL | re.MULTILINE) if ">>>" in block
    ]
    return doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page.name, str(page), 0)


def named_tests(page: Path) -> set[str]:
    """The tests that a page names, files of tests left out."""
    return set(re.findall(r"`(test_\w+)`", text(page)))


@pytest.mark.parametrize("page", [page for page in PAGES if page != INDEX], ids=lambda page: page.stem)
def test_the_examples_of_a_page_give_what_it_prints(page: Path) -> None:
    found, report = examples(page), list[str]()
    result = doctest.DocTestRunner().run(found, out=report.append)
    assert result.attempted > 0, f"{page.name} has no worked example"
    assert not result.failed, "".join(report)


@pytest.mark.parametrize(
    "page",
    [*PAGES, *sorted((ROOT / "docs" / "papers").glob("*.md")), *(ROOT / "docs" / f"{name}.md" for name in OF_THE_CODE)],
    ids=lambda page: page.stem,
)
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    named = re.findall(r"`([\w./]+(?:\.(?:py|md|toml)|/))`", text(page))
    there = (ROOT, SOURCE)
    assert [name for name in named if name != AN_EXAMPLE and not any((base / name).exists() for base in there)] == []


def test_every_test_folder_that_contributors_are_sent_to_exists() -> None:
    named = set(re.findall(r"`(tests(?:/\w+)+(?:\.py)?)`", text(ROOT / "docs" / "contributing.md")))
    assert len(named) > 10
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_table_of_packages_is_within_a_tenth_of_the_tree() -> None:
    rows = re.findall(r"^\| ([^|]+) \| (\d+) \| ([\d,]+) \|", text(ARCHITECTURE), re.MULTILINE)
    assert len(rows) == 6
    for packages, files, lines in rows:
        names = re.findall(r"`(\w+)`", packages)
        sources = [path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0].split(".")[0] in names]
        assert len(sources) == pytest.approx(int(files), rel=0.1), packages
        assert sum(text(path).count("\n") for path in sources) == pytest.approx(int(lines.replace(",", "")), rel=0.1)


@EVERY_PAGE
def test_every_test_that_a_page_names_is_in_a_file_that_it_names(page: Path) -> None:
    files = [ROOT / name for name in re.findall(r"`(tests/[\w/]+\.py)`", text(page))]
    defined = {name for file in files for name in re.findall(r"^def (test_\w+)", text(file), re.MULTILINE)}
    assert named_tests(page) - defined == set()


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    targets = [link for link in re.findall(r"\]\(([^)#]+)", text(page)) if "://" not in link]
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_the_index_leads_to_every_page() -> None:
    assert [page.name for page in PAGES if page != INDEX and f"({page.name})" not in text(INDEX)] == []
    assert "(models/index.md)" in text(ARCHITECTURE)


REFUSALS = set(re.findall(r'Refusal\(\s*"([^"]+)"', text(SOURCE / "control" / "governor.py")))


@pytest.mark.parametrize(
    ("page", "names"),
    [("policies", POLICIES), ("placement", PLACERS), ("forecasts", FORECASTERS), ("governor", REFUSALS)],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_page_has_a_line_for_everything_of_its_kind(page: str, names: Iterable[str]) -> None:
    written = text(MODELS / f"{page}.md")
    assert [name for name in names if f"`{name}`" not in written] == []
