"""Fetches jars by their Maven coordinates with ``mvn``, once, into a local cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sluicegate.errors import BadInput, EnvironmentLacks

_FETCH_S = 300.0
_ALONE = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
_POM = (
    '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>sluicegate</groupId>'
    "<artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>"
    "<dependencies>{dependencies}</dependencies></project>"
)


def jars_folder() -> Path:
    """``$SLUICEGATE_JARS``, or ``~/.cache/sluicegate/jars``."""
    given = os.environ.get("SLUICEGATE_JARS")
    return Path(given) if given else Path.home() / ".cache" / "sluicegate" / "jars"


def jars_of(what: str, coordinates: Sequence[str], transitive: bool = False) -> list[Path]:
    """The jars of ``coordinates`` ("group:artifact:version"), with their dependencies if ``transitive``."""
    digest = hashlib.sha256(repr((sorted(coordinates), transitive)).encode()).hexdigest()[:12]
    folder = jars_folder() / f"{what}-{digest}"
    if not folder.is_dir():
        _fetch(what, coordinates, transitive, folder)
    return sorted(folder.glob("*.jar"))


def _fetch(what: str, coordinates: Sequence[str], transitive: bool, folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise EnvironmentLacks(
            f"the jars of {what} are not in {folder} and Maven (mvn) is not on the path to fetch them: install Maven, "
            f"or put {', '.join(coordinates)} there"
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as made:
            draft = Path(made)
            (draft / "pom.xml").write_text(_pom(coordinates, transitive), encoding="utf-8")
            _run([maven, "-q", "-B", "-f", str(draft / "pom.xml"), "dependency:copy-dependencies"], what, draft)
            if not folder.is_dir():  # another process may have fetched them meanwhile
                (draft / "jars").rename(folder)
    except OSError as problem:
        told = f"cannot keep jars in {folder.parent} ({problem.strerror}): set SLUICEGATE_JARS to a folder that can"
        raise EnvironmentLacks(told) from None


def _run(command: list[str], what: str, draft: Path) -> None:
    options = ["-DincludeScope=runtime", f"-DoutputDirectory={draft / 'jars'}"]
    try:
        done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=_FETCH_S, check=False)
    except subprocess.TimeoutExpired:
        raise EnvironmentLacks(f"Maven took over {_FETCH_S:g} s to fetch the jars of {what}: try again") from None
    if done.returncode:
        said = next((line for line in done.stdout.splitlines() if "ERROR" in line), "no reason given")
        raise EnvironmentLacks(f"Maven could not fetch the jars of {what}: {said.strip()[:300]}")


def _pom(coordinates: Sequence[str], transitive: bool) -> str:
    return _POM.format(dependencies="".join(_dependency(text, transitive) for text in coordinates))


def _dependency(text: str, transitive: bool) -> str:
    parts = text.strip().split(":")
    if len(parts) != 3 or not all(parts):
        raise BadInput(f"Maven coordinates {text!r}: give group:artifact:version")
    group, artifact, version = parts
    named = f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
    return f"<dependency>{named}{'' if transitive else _ALONE}</dependency>"
