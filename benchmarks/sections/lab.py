"""Speed of the simulator and of the replay."""

from __future__ import annotations

from sections.section import Column, Section, ratio, seconds, times

SECTIONS: tuple[Section, ...] = (
    Section(
        "simulator",
        "The simulator against Ciw and SimPy",
        "Events a second on the same networks, in turns.",
        "simulator_speed.py",
        (Column("network", "network"),),
        (
            Column("sluicegate", "sluicegate_per_s"),
            Column("Ciw", "ciw_per_s"),
            Column("SimPy", "simpy_per_s"),
            Column("over Ciw", "over_ciw", times),
            Column("over SimPy", "over_simpy", times),
        ),
    ),
    Section(
        "replay_speed",
        "Speed of the replay",
        "Ten policies, five runs, a week of minutes on all cores; and the gain of computing shared values once.",
        "replay_speed.py",
        (Column("protocol", "protocol"),),
        (
            Column("wall", "wall_s", seconds),
            Column("processor time", "cpu_s", seconds),
            Column("each alone / shared", "ratio", ratio),
        ),
    ),
)

REPLAY = """## Replay of traces

[Replay](replay.md) explains the simulation; its tables, with the commands that make them, are on
[a separate page](replay_tables.md).
"""
