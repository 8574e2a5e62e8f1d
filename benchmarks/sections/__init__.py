"""The sections of docs/benchmarks.md in the order of the page; each module has those of one group of `bench.PARTS`."""

from sections import attach, capacity, edges, fidelity, kafka, lab, live, nexmark, planning, soak, state
from sections.lab import REPLAY
from sections.section import Column, Section

SECTIONS: tuple[Section, ...] = (
    *live.SECTIONS,
    *edges.SECTIONS,
    *state.SECTIONS,
    *attach.SECTIONS,
    *kafka.SECTIONS,
    *nexmark.SECTIONS,
    *capacity.SECTIONS,
    *planning.SECTIONS,
    *lab.SECTIONS,
    *fidelity.SECTIONS,
    *soak.SECTIONS,
)

__all__ = ["REPLAY", "SECTIONS", "Column", "Section"]
