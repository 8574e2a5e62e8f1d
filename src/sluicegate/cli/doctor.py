"""`sluicegate doctor`: whether this machine has what sluicegate needs, and what to do where it does not."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.markup import escape
from rich.table import Table

import sluicegate
from sluicegate.cli.out import console, print_json
from sluicegate.config.machine import usable_cores
from sluicegate.errors import SluicegateError
from sluicegate.runlog.files import owner_only_folder
from sluicegate.runlog.runs import runs_folder
from sluicegate.spark.cluster.daemons import free_port
from sluicegate.spark.cluster.java import find_java

_GIB = 1 << 30
_CLASS = "sluicegate/EdgeProvider.class"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check; ``problem`` prevents sluicegate from running, ``warning`` limits it."""

    what: str
    state: Literal["ok", "warning", "problem"]
    found: str
    remedy: str = ""


def all_findings() -> list[Finding]:
    return [check() for check in CHECKS]


def python_version() -> Finding:
    found = ".".join(map(str, sys.version_info[:3]))
    if (3, 11) <= sys.version_info[:2] <= (3, 13):
        return Finding("Python", "ok", found)
    return Finding("Python", "problem" if sys.version_info < (3, 11) else "warning", found, "use Python 3.11 to 3.13")


def java() -> Finding:
    remedy = "install Java 17 or 21 and put it on the path, or let JAVA_HOME name it"
    try:
        path = find_java()
        done = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except SluicegateError as problem:
        return Finding("Java", "problem", str(problem), remedy)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return Finding("Java", "problem", f"does not run: {problem}", remedy)
    major = java_major(done.stderr)
    found = f"{major or 'unknown version'} at {path}"
    return Finding("Java", "ok" if major in (17, 21) else "warning" if (major or 0) > 17 else "problem", found, remedy)


def java_major(told: str) -> int | None:
    """
    >>> java_major('openjdk version "17.0.9" 2023-10-17'), java_major('java version "1.8.0_392"'), java_major("")
    (17, 8, None)
    """
    match = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(match[1]) if match else None


def _library(name: str, least: tuple[int, ...], below: tuple[int, ...] | None = None) -> Finding:
    limits = f">={'.'.join(map(str, least))}" + (f",<{'.'.join(map(str, below))}" if below else "")
    remedy = f"install it with: pip install '{name}{limits}'"
    try:
        found = version(name)
    except PackageNotFoundError:
        return Finding(name, "problem", "not installed", remedy)
    numbers = tuple(int(part) for part in re.findall(r"\d+", found)[:3])
    fits = numbers >= least and (below is None or numbers < below)
    return Finding(name, "ok" if fits else "problem", found, "" if fits else remedy)


def pyspark() -> Finding:
    return _library("pyspark", (4, 3), (5,))


def pandas() -> Finding:
    return _library("pandas", (2, 2), (3,))


def pyarrow() -> Finding:
    return _library("pyarrow", (18,))


def jar() -> Finding:
    path = Path(sluicegate.__file__).parent / "spark" / "jvm" / "sluicegate.jar"
    remedy = "install sluicegate again, or build it with scripts/build-jar.sh"
    try:
        with zipfile.ZipFile(path) as archive:
            whole = _CLASS in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return Finding("sluicegate's jar", "problem", f"{path} is missing or broken", remedy)
    return Finding("sluicegate's jar", "ok" if whole else "problem", str(path), "" if whole else remedy)


def memory() -> Finding:
    free = _free_bytes()
    if free is None:
        return Finding("memory", "ok", "not reported by this system")
    state: Literal["ok", "warning", "problem"] = "ok" if free >= 2 * _GIB else "warning" if free >= _GIB else "problem"
    return Finding("memory", state, f"{free / _GIB:.1f} GiB free", "" if state == "ok" else "free 2 GiB for Spark")


def _free_bytes() -> int | None:
    """Memory in bytes that processes may still take, as the system reports it."""
    try:
        told = Path("/proc/meminfo").read_text(encoding="utf-8")
    except OSError:
        return None
    match = re.search(r"MemAvailable:\s+(\d+) kB", told)
    return int(match[1]) * 1024 if match else None


def cores() -> Finding:
    count = usable_cores()
    if count >= 2:
        return Finding("cores", "ok", str(count))
    return Finding("cores", "warning", str(count), "batches take turns on one core: expect latencies of many seconds")


def temporary_folder() -> Finding:
    where = tempfile.gettempdir()
    try:
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"sluicegate")
        free = shutil.disk_usage(where).free
    except OSError as problem:
        told = f"{where} cannot be written ({problem.strerror})"
        return Finding("temporary folder", "problem", told, "set TMPDIR to a folder of yours")
    state: Literal["ok", "warning"] = "ok" if free >= _GIB else "warning"
    remedy = "" if state == "ok" else "free 1 GiB there, or set TMPDIR"
    return Finding("temporary folder", state, f"{where}, {free / _GIB:.1f} GiB free", remedy)


def home() -> Finding:
    where = runs_folder()
    try:
        owner_only_folder(where)
        with tempfile.NamedTemporaryFile(dir=where):
            return Finding("sluicegate's home", "ok", str(where.parent))
    except OSError as problem:
        told = f"{where.parent} cannot be written ({problem.strerror})"
        return Finding("sluicegate's home", "warning", told, "set SLUICEGATE_HOME, or name runs by their folder")


def loopback() -> Finding:
    try:
        return Finding("loopback", "ok", f"port {free_port()} is free")
    except (OSError, SluicegateError) as problem:
        return Finding("loopback", "problem", str(problem), "allow processes to listen on 127.0.0.1: Spark needs it")


def browser() -> Finding:
    found = next((path for name in _BROWSERS if (path := shutil.which(name))), None)
    if found:
        return Finding("chromium", "ok", found)
    return Finding("chromium", "warning", "not found", "only tests of pages need it: install chromium")


def _optional(module: str, package: str, who: str) -> Finding:
    if find_spec(module) is not None:
        return Finding(package, "ok", "installed")
    remedy = f"only the application {who} needs it: pip install {package}"
    return Finding(package, "warning", "not installed", remedy)


def opencv() -> Finding:
    return _optional("cv2", "opencv-python-headless", "vld")


def river() -> Finding:
    return _optional("river", "river", "vht")


CHECKS: tuple[Callable[[], Finding], ...] = (
    python_version,
    java,
    pyspark,
    jar,
    pandas,
    pyarrow,
    memory,
    cores,
    temporary_folder,
    home,
    loopback,
    browser,
    opencv,
    river,
)


_LACKS = 3
_SIGNS = {"ok": "[green]ok[/]", "warning": "[yellow]warning[/]", "problem": "[bold red]problem[/]"}


def doctor(json_out: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False) -> int:
    """Check Java, Spark, libraries, memory, disk and ports, and say what to do where something is missing."""
    findings = all_findings()
    if json_out:
        print_json({"well": not _problems(findings), "findings": [asdict(finding) for finding in findings]})
    else:
        _show(findings)
    return _LACKS if _problems(findings) else 0


def _problems(findings: list[Finding]) -> int:
    return sum(finding.state == "problem" for finding in findings)


def _show(findings: list[Finding]) -> None:
    table = Table("", "what", "found", "what to do", box=None, pad_edge=False)
    for finding in findings:
        remedy = "" if finding.state == "ok" else finding.remedy
        table.add_row(_SIGNS[finding.state], finding.what, escape(finding.found), escape(remedy))
    out, problems = console(), _problems(findings)
    out.print(table)
    out.print(
        f"\n{problems} problem(s): sluicegate will not run as it is" if problems else "\neverything needed is here"
    )
