"""requirements.lock, which `make setup` installs, and what pyproject.toml asks for."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
INSTALLED = [*PROJECT["dependencies"], *EXTRAS["apps"], *EXTRAS["dev"]]
"""What `make lock` resolves."""
_LINE = re.compile(r"^([\w.-]+)==([\w.]+)(?: ; (.+?))? \\$", re.MULTILINE)


def locked() -> dict[str, list[tuple[str, str | None]]]:
    """By name, the versions with their markers."""
    found: dict[str, list[tuple[str, str | None]]] = {}
    for name, version, marker in _LINE.findall((ROOT / "requirements.lock").read_text(encoding="utf-8")):
        found.setdefault(name, []).append((version, marker or None))
    return found


@pytest.mark.parametrize("asked", INSTALLED)
def test_the_lock_has_a_version_of_everything_that_is_asked_for(asked: str) -> None:
    wanted = Requirement(asked)
    versions = locked().get(wanted.name, [])
    assert versions, f"{wanted.name} is not in requirements.lock: make lock"
    assert all(wanted.specifier.contains(version) for version, _ in versions), "make lock"


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
def test_every_python_that_is_supported_gets_one_version_of_each(python: str) -> None:
    here = {"python_version": python, "python_full_version": f"{python}.9"}
    for name, versions in locked().items():
        fits = [version for version, marker in versions if marker is None or Marker(marker).evaluate(here)]
        assert len(fits) <= 1, name


def test_what_the_package_imports_is_what_it_asks_for() -> None:
    """Names of distributions; what only an extra brings is imported where it is needed, by functions."""
    names = {
        module.split(".")[0]
        for path in (ROOT / "src" / "sluicegate").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for module in _imported(node)
    }
    by_module = packages_distributions()
    asked = {Requirement(one).name for one in (*PROJECT["dependencies"], *EXTRAS["kafka"], *EXTRAS["apps"])}
    foreign = {name for name in names if name not in sys.stdlib_module_names and name != "sluicegate"}
    assert {name for name in foreign if not asked & set(map(canonicalize_name, by_module.get(name, [name])))} == set()


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []
