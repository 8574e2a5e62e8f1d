"""The study's figures on disk, in a file that is whole whenever the study is killed; what it lacks is run."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any

from frontier_cells import Cell, Row
from sluicegate.errors import BadInput

Kept = dict[str, Any]


def filled(path: Path, cells: Sequence[Cell], workers: int) -> dict[str, list[Row]]:
    """The rows of every cell by its name; what the file lacks, or has of other sources, is run and kept at once.

    Without workers nothing is run: what is there comes back.
    """
    kept, wanted = _read(path), {cell.name: cell.digest() for cell in cells}
    missing = [cell for cell in cells if kept.get(cell.name, {}).get("digest") != wanted[cell.name]]
    _say(f"{len(cells)} cells, {len(cells) - len(missing)} of them in {path}")
    found = {cell.name: kept[cell.name] for cell in cells if cell not in missing}
    if workers:
        for cell, rows in _run(missing, workers):
            found[cell.name] = kept[cell.name] = {"digest": wanted[cell.name], "rows": [asdict(row) for row in rows]}
            _write(path, kept)
    return {name: [Row(**row) for row in cell["rows"]] for name, cell in found.items()}


def _run(cells: Sequence[Cell], workers: int) -> Iterator[tuple[Cell, list[Row]]]:
    """Each cell with its rows, as they come."""
    began = time.monotonic()
    # spawned: a fork would copy the locks of the compiler's threads
    with ProcessPoolExecutor(workers, get_context("spawn"), initializer=_end_with_parent) as pool:
        running = {pool.submit(cell.rows): cell for cell in cells}
        for done, future in enumerate(as_completed(running), start=1):
            yield running[future], future.result()
            _say(f"{done}/{len(cells)} after {time.monotonic() - began:,.0f} s: {running[future].name}")


def _read(path: Path) -> Kept:
    if not path.exists():
        return {}
    try:
        kept: Kept = json.loads(path.read_text(encoding="utf-8"))["cells"]
    except (ValueError, KeyError, TypeError):
        raise BadInput(f"{path}: is not a file of this study; move it away or name another with --json") from None
    return kept


def _write(path: Path, kept: Kept) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps({"cells": kept}, indent=1, sort_keys=True), encoding="utf-8")
    part.replace(path)


def _end_with_parent() -> None:
    """A worker of a study that was killed would else wait for work for ever."""
    threading.Thread(target=_outlive_nobody, daemon=True).start()


def _outlive_nobody() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
