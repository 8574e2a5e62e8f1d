"""What each constant of the on-time policy is worth: the replay with one of them changed in the sources.

    nice -n 19 python benchmarks/constants_ablated.py TRACE... [--minutes 5760] [--only OUTLIER,_BELOW=1.0]
    python benchmarks/constants_ablated.py --list [--package src/sluicegate]

The second prints the constants of our own policies: every name in capitals that is given a number in ``policy/`` (not
papers and peers), ``control/`` and the forecast that ours use. Names worked out from others are not counted.

Each variant is a copy of the package with one line replaced, so that compiled code and whatever imports a constant
follow. A cell is the cost against the package as it is (geometric mean over traces), the difference of minutes on time
in points, and the rescales against it. Bound by one core: some seconds a variant, trace and protocol, and as long to
compile.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

import sluicegate

# a value at which the constant does nothing, or half and double where there is none
VARIANTS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "policy/on_time.py": {
        "PRICE_0": ("0.09", "0.36"),
        "MOST_PRICE": ("PRICE_0", "4 * PRICE_0"),
        "LEAST_PRICE": ("0.0", "4.0"),
        "SPEND": ("1_250.0", "5_000.0"),
        "MEMORY": ("1e9",),
        "PATIENCE": ("0.3", "1.2"),
        "KEEP": ("0.4", "1.0"),
    },
    "policy/late_chance.py": {"_GROWTH": ("1", "3", "12")},
    "policy/capacity_law.py": {
        "_SLOPE": ("0.8",),
        "_SLOPE_SD": ("0.05", "0.2"),
        "_ASSUMED_NOISE": ("0.025", "0.1"),
    },
    "forecast/least_squares.py": {"_MOST_TRACE": ("50.0", "200.0", "1e9")},
    "forecast/direct_state.py": {"RECENT": ("8", "30")},
    "forecast/direct.py": {
        "_FIVE": ("3", "10"),
        "MEMORY": ("2_500", "10_000"),
        "OUTLIER": ("5.0", "1e9"),
        "_LEAST": ("0.0015", "0.006"),
        "_MOST": ("2.0", "1e3"),
        "_BELOW": ("1.0",),
        "_PHASE_RATE": ("0.01", "0.1"),
        "_TO_SD": ("1.0",),
        "_NOTHING": ("0.0",),
    },
    "forecast/calibrated.py": {"BLOCK": ("50", "200")},
}
_OURS = ("policy/*.py", "forecast/calibrated.py", "forecast/direct*.py", "forecast/least_squares.py", "control/*.py")
_REPLAY = """
import json, sys
from pathlib import Path
from sluicegate.config.trace_file import read_trace
from sluicegate.lab.replay.replay import ReplayOptions, replay
from sluicegate.lab.replay.world import DEFAULT_POINTS, PROTOCOLS, truth_of
minutes, target, runs, *paths = sys.argv[1:]
found = {}
for name, protocol in PROTOCOLS.items():
    for path in paths:
        values = read_trace(Path(path)).values[: int(minutes)]
        options = ReplayOptions(("on-time",), protocol, float(target), runs=int(runs))
        one = replay([(path, values)], truth_of(DEFAULT_POINTS), options)[0].results[0]
        found[f"{name} {path}"] = [one.cost_vs_hindsight, one.qos, one.rescales]
print(json.dumps(found))
"""
Found = Mapping[str, Sequence[float]]
PROTOCOLS = ("cycle", "free")


def constants(package: Path) -> Iterator[tuple[str, str, str]]:
    """File, name and value of every constant of our own policies."""
    for path in (path for pattern in _OURS for path in sorted(package.glob(pattern))):
        for line in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(line, ast.Assign):
                for name, value in _assigned(line.targets[0], line.value):
                    yield path.relative_to(package).as_posix(), name, value


def _assigned(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, str]]:
    """
    >>> [*_assigned(*(lambda line: (line.targets[0], line.value))(ast.parse("A, B, c = 1, 2 * A, 3").body[0]))]
    [('A', '1')]
    """
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, its in zip(target.elts, value.elts, strict=True):
            yield from _assigned(one, its)
    elif isinstance(target, ast.Name) and target.id.isupper() and _is_number(value):
        yield target.id, ast.unparse(value)


def _is_number(value: ast.expr) -> bool:
    if isinstance(value, ast.Tuple):
        return all(map(_is_number, value.elts))
    if isinstance(value, ast.UnaryOp):
        return _is_number(value.operand)
    return isinstance(value, ast.Constant) and isinstance(value.value, int | float)


def changed(source: str, name: str, value: str) -> str:
    """The source with one constant at another value.

    >>> changed("A = 1\\n_A = 2  # why\\n", "_A", "3")
    'A = 1\\n_A = 3  # why\\n'
    """
    line = re.compile(rf"^({re.escape(name)} = )[^#\n]*?(?=\s*(#.*)?$)", re.MULTILINE)
    after, count = line.subn(rf"\g<1>{value}", source)
    if count != 1:
        raise SystemExit(f"{name} is assigned {count} times")
    return after


def played(change: tuple[str, str, str] | None, asked: argparse.Namespace) -> Found:
    """The replay of a copy of the package, with one constant changed."""
    package = Path(sluicegate.__file__).parent
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "sluicegate"
        shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__", "*.jar"))
        if change is not None:
            path, name, value = change
            (copy / path).write_text(changed((copy / path).read_text(), name, value))
        words = [str(asked.minutes), str(asked.target), str(asked.runs), *(str(p.absolute()) for p in asked.traces)]
        told = subprocess.run(
            [sys.executable, "-c", _REPLAY, *words],
            env={**os.environ, "PYTHONPATH": folder},
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
    found: Found = json.loads(told.stdout.splitlines()[-1])
    return found


def cell(before: Found, after: Found, protocol: str) -> str:
    pairs = [(before[key], after[key]) for key in before if key.startswith(protocol)]
    cost = math.exp(fmean(math.log(b[0] / a[0]) for a, b in pairs)) - 1
    points = 100 * fmean(b[1] - a[1] for a, b in pairs)
    moves = sum(b[2] for _, b in pairs) / sum(a[2] for a, _ in pairs)
    return f"{cost:+.1%} {points:+.2f} x{moves:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description="The replay with one constant of the on-time policy changed.")
    parser.add_argument("traces", nargs="*", type=Path, metavar="TRACE")
    parser.add_argument("--list", action="store_true", help="print the constants, play nothing")
    parser.add_argument("--package", type=Path, default=Path(sluicegate.__file__).parent, help="of --list: whose")
    parser.add_argument("--minutes", type=int, default=5760)
    parser.add_argument("--target", type=float, default=0.995)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--only", default="", help="constants to change, or NAME=VALUE of one, with commas between")
    asked = parser.parse_args()
    if asked.list:
        found = [*constants(asked.package)]
        print("\n".join(f"{path:30} {name} = {value}" for path, name, value in found), f"{len(found)} in all", sep="\n")
        return
    if not asked.traces:
        parser.error("no traces: name CSV files of rates")
    only = frozenset(filter(None, asked.only.split(",")))
    before = played(None, asked)
    print("| constant | " + " | ".join(PROTOCOLS) + " |\n|---" + "|---" * len(PROTOCOLS) + "|", flush=True)
    for path, varied in VARIANTS.items():
        for name, values in varied.items():
            for value in (v for v in values if not only or {name, f"{name}={v}"} & only):
                after = played((path, name, value), asked)
                cells = " | ".join(cell(before, after, protocol) for protocol in PROTOCOLS)
                print(f"| {name} {value} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
