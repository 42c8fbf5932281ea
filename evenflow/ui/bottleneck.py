"""Which stage holds the stream back, in words.

A stage that waits for credit is held back by one that it sends to. So the bottleneck is where that chain ends: the first stage behind a
waiting one that does not wait itself.

>>> read = Figures("read", ("count",), busy=0.2, credit=0.7)
>>> count = Figures("count", (), busy=0.97, credit=0.0, hottest="count-1")
>>> bottleneck([read, count])
('count', 'count holds the stream back: count-1 is busy for 97% of its time, and read waits for it 70% of its time.')
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WAITS = 0.1
"""A stage that waits for credit for more of its time is held back."""

BUSY = 0.8
"""A worker that is busy for more of its time can do little more."""


@dataclass(frozen=True, slots=True)
class Figures:
    """A stage: `busy`, `credit`: useful time and waiting for credit, of the worker with most of it; `hottest`: the busiest worker."""

    name: str
    outputs: tuple[str, ...]
    busy: float
    credit: float
    hottest: str = ""


def bottleneck(stages: Sequence[Figures]) -> tuple[str | None, str]:
    """The stage and a sentence; no stage if nothing holds the stream back. `stages` in topological order."""
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
