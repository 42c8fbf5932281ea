"""Finds the stage that holds the stream back.

A stage that waits for credit is held back by a stage that it sends to. So the bottleneck is the end of that chain: a stage that does not
wait for credit, after one that does.

>>> read = Figures("read", ("count",), busy=0.2, credit=0.7)
>>> count = Figures("count", (), busy=0.97, credit=0.0, hottest="count-1")
>>> bottleneck([read, count])
('count', 'count holds the stream back: count-1 is busy for 97% of its time, and read waits for it 70% of its time.')
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WAITS = 0.1
"""The share of its time above which a stage that waits for credit is held back."""

BUSY = 0.8
"""The share of its time above which a busy worker is close to its limit."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a stage. `busy`, `credit`: the shares of useful time and of waiting for credit, each of the worker with the largest;
    `hottest`: the busiest worker.
    """

    name: str
    outputs: tuple[str, ...]
    busy: float
    credit: float
    hottest: str = ""


def bottleneck(stages: Sequence[Figures]) -> tuple[str | None, str]:
    """Return the stage and a sentence; no stage if nothing holds the stream back. `stages` are in topological order."""
    by_name = {stage.name: stage for stage in stages}
    held = [stage for stage in stages if stage.credit > WAITS]
    for waiting in reversed(held):
        ahead = [by_name[name] for name in waiting.outputs if name in by_name and by_name[name].credit <= WAITS]
        if ahead:
            slow = max(ahead, key=lambda stage: stage.busy)
            works = f"{slow.hottest} is busy for {slow.busy:.0%} of its time"
            return (
                slow.name,
                f"{slow.name} holds the stream back: {works}, and {waiting.name} waits for it {waiting.credit:.0%} of its time.",
            )
    if not stages:
        return None, "No figures yet."
    busiest = max(stages, key=lambda stage: stage.busy)
    if busiest.busy > BUSY:
        return busiest.name, f"{busiest.name} is close to its limit: {busiest.hottest} is busy for {busiest.busy:.0%} of its time."
    return None, f"Nothing holds the stream back: the busiest worker, {busiest.hottest}, is busy for {busiest.busy:.0%} of its time."
