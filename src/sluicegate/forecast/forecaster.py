"""The forecaster interface: learn one rate per step into a memory, forecast from that memory."""

from __future__ import annotations

from typing import Protocol, TypeVar

from sluicegate.domain import Forecast

Memory = TypeVar("Memory")


class Forecaster(Protocol[Memory]):
    """A load forecaster. ``learn`` is called once per ``step_s``; ``forecast`` is ``None`` until enough was learned."""

    @property
    def name(self) -> str: ...

    @property
    def step_s(self) -> float: ...

    def start(self) -> Memory: ...

    def learn(self, memory: Memory, rate_per_s: float) -> Memory: ...

    def forecast(self, memory: Memory, steps: int) -> Forecast | None: ...
