"""The HTTP routes: page, run, series, events, metrics. All of them only read."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

from fastapi import FastAPI, Header, Query
from fastapi.responses import FileResponse, JSONResponse, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent
from fastapi.staticfiles import StaticFiles
from prometheus_client import CONTENT_TYPE_LATEST

from sluicegate.dashboard.answers import decisions_before, run_document, series_document
from sluicegate.dashboard.metrics import metrics_text
from sluicegate.dashboard.watching import Watching

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
