"""The HTTP routes, and the JSON documents behind them: page, run, series, events, metrics. All of them only read."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated

import numpy as np
from fastapi import FastAPI, Header, HTTPException, Query
from fastapi.responses import FileResponse, JSONResponse, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent
from fastapi.staticfiles import StaticFiles
from prometheus_client import CONTENT_TYPE_LATEST

from sluicegate.dashboard.history import (
    COLUMNS,
    OPERATOR_COLUMNS,
    Floats,
    Ints,
    Window,
    bucket_starts,
    extremes,
    spread_times,
)
from sluicegate.dashboard.metrics import metrics_text
from sluicegate.dashboard.record import Document, Record, in_words
from sluicegate.dashboard.watching import Watching

_NAMED = 8
"""Most operators with a colour of their own; more could not be distinguished."""
_MOST_DECISIONS = 50


def run_document(record: Record) -> Document:
    """Everything except the series: what a page needs when it loads or refetches."""
    return {
        "name": record.description.name,
        "drawing": record.drawing,
        "caught_up": record.caught_up,
        "kept_since_s": record.history.first_s,
        "ticks": len(record.history),
        "tick": None if record.tick is None else in_words(record.tick),
        **record.documents,
        "outcome": record.outcome,
        "over": record.over,
        "decisions": decisions_before(record, None),
        "decisions_made": record.decisions_made,
        "fleet": list(record.fleet)[::-1],
        "slot_seconds": record.slot_seconds,
    }


def decisions_before(record: Record, before: int | None) -> list[Document]:
    """The newest ``_MOST_DECISIONS`` decisions, newest first; with ``before``, only those with a lower number."""
    newest_first = (d for d in reversed(record.decisions) if before is None or d["number"] < before)
    return list(islice(newest_first, _MOST_DECISIONS))


def series_document(record: Record, from_s: float, to_s: float, points: int, operator: str | None) -> Document:
    """The series between two times, in at most ``points`` points."""
    window = record.history.between(from_s, to_s)
    thinned = _Thinned(window.at_s, points)
    if operator is not None:
        return _of_operator(window, thinned, operator)
    columns = {name: thinned(window.column(name)) for name in COLUMNS}
    return {"at_s": thinned.times(), "columns": columns, "operators": _processors(window, thinned)}


def _of_operator(window: Window, thinned: _Thinned, operator: str) -> Document:
    if operator not in window.operators:
        raise HTTPException(404, f"no operator {operator!r}")
    return {
        "at_s": thinned.times(),
        "columns": {what: thinned(window.of_operator(operator, what)) for what in OPERATOR_COLUMNS},
    }


def _processors(window: Window, thinned: _Thinned) -> list[Document]:
    """k of the largest operators and of all others together, at ticks that exist, so that the stacked areas add up."""
    k = window.processors_at(thinned.places(window.column("processors")))
    order = np.argsort(-k.sum(axis=0, dtype=np.int64), kind="stable")
    most = _NAMED if len(order) > _NAMED + 1 else len(order)
    named = sorted(order[:most].tolist())
    found: list[Document] = [{"name": window.operators[o], "processors": k[:, o].tolist()} for o in named]
    rest = order[most:]
    if len(rest):
        found.append({"name": f"{len(rest)} others", "processors": k[:, rest].sum(axis=1, dtype=np.int64).tolist()})
    return found


class _Thinned:
    """Thins all series of a window to one axis of at most ``points`` times."""

    def __init__(self, at_s: Floats, points: int) -> None:
        self._at_s = at_s
        self._starts: Ints | None = bucket_starts(at_s, points // 2) if len(at_s) > points else None

    def times(self) -> list[float]:
        times = self._at_s if self._starts is None else spread_times(self._at_s, self._starts)
        return [round(at_s, 3) for at_s in times.tolist()]

    def places(self, values: Floats) -> Ints:
        return np.arange(len(values)) if self._starts is None else extremes(values, self._starts)

    def __call__(self, values: Floats) -> list[float | None]:
        return [float(f"{v:.6g}") if np.isfinite(v) else None for v in values[self.places(values)].tolist()]


_STATIC = Path(__file__).parent / "static"


def application(watching: Watching) -> FastAPI:
    """The application; the folder is polled while it is served."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with watching.running():
            yield

    # no OpenAPI pages: they would load scripts from elsewhere; no telemetry is sent
    app = FastAPI(
        lifespan=lifespan,
        openapi_url=None,
        telemetry={"auto_configure": False, "tracing": False, "metrics": False, "logs": False},
    )
    _add_api(app, watching)
    app.mount("/static", StaticFiles(directory=_STATIC))

    @app.get("/metrics")
    async def metrics() -> Response:
        return Response(metrics_text(watching.record), media_type=CONTENT_TYPE_LATEST)

    @app.get("/")
    async def page() -> FileResponse:
        return FileResponse(_STATIC / "index.html")

    return app


def _add_api(app: FastAPI, watching: Watching) -> None:
    record, news = watching.record, watching.news

    @app.get("/api/run")
    async def run() -> JSONResponse:
        return JSONResponse(run_document(record))

    @app.get("/api/series")
    async def series(
        from_s: Annotated[float, Query(alias="from")] = -math.inf,
        to_s: Annotated[float, Query(alias="to")] = math.inf,
        points: Annotated[int, Query(ge=2, le=5000)] = 600,
        operator: str | None = None,
    ) -> JSONResponse:
        return JSONResponse(series_document(record, from_s, to_s, points, operator))

    @app.get("/api/decisions")
    async def decisions(before: int | None = None) -> JSONResponse:
        return JSONResponse(decisions_before(record, before))

    @app.get("/api/events", response_class=EventSourceResponse)
    async def events(last_event_id: Annotated[str | None, Header()] = None) -> AsyncIterator[ServerSentEvent]:
        async for event in news.follow(last_event_id):
            yield ServerSentEvent(raw_data=event.text, event=event.kind, id=event.id, retry=1000)
