"""Damping: noise in an operator's need is no reason to undo its last change.

DS2 rounds up. An operator that needs a little over 2 workers gets 3, and at the next observation it may need a little under 2. So
a change against the direction of the last one requires that the need has changed by a share of it since. More workers are also
added where too little of the demand gets through.

Invariant: changes in the same direction, and the first one, are never held back.

>>> from .dataflow.figures import OperatorFigures
>>> count = DataflowSnapshot((OperatorFigures("count", 3),))
>>> last = after_change((), {"count": 3}, {"count": 2.05}, DataflowSnapshot((OperatorFigures("count", 2),)))
>>> steady(last, {"count": 2}, {"count": 1.96}, count, Noise(change=0.1, target_ratio=0.95))
({}, ('count: 1.96 is too close to the 2.05 for which it was given workers',))
>>> steady(last, {"count": 2}, {"count": 1.8}, count, Noise(change=0.1, target_ratio=0.95))
({'count': 2}, ())
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from .dataflow.shortfall import got_through
from .dataflow.snapshot import DataflowSnapshot


class Noise(NamedTuple):
    """The bounds of noise: a need may change by less than the share `change`, while at least `target_ratio` of the demand gets
    through.
    """

    change: float
    target_ratio: float


class Turn(NamedTuple):
    """The last change of an operator: more workers (`grew`) or fewer, for this need (workers, not rounded)."""

    operator: str
    grew: bool
    need: float


def after_change(
    turns: tuple[Turn, ...], wanted: Mapping[str, int], needed: Mapping[str, float], snapshot: DataflowSnapshot
) -> tuple[Turn, ...]:
    """Return the last changes once `wanted` is decided, for `needed` workers."""
    before = snapshot.parallelism
    now = {name: Turn(name, workers > before[name], needed[name]) for name, workers in wanted.items() if name in needed}
    return tuple({**{turn.operator: turn for turn in turns}, **now}.values())


def steady(
    turns: tuple[Turn, ...], wanted: Mapping[str, int], needed: Mapping[str, float], snapshot: DataflowSnapshot, noise: Noise
) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return the part of `wanted` that is more than noise, and a note for each operator that stays unchanged for that reason."""
    last = {turn.operator: turn for turn in turns if turn.operator in wanted and turn.operator in needed}
    held = {name: turn for name, turn in last.items() if _is_noise(turn, wanted[name], needed[name], snapshot, noise)}
    notes = (
        f"{name}: {needed[name]:.2f} is too close to the {turn.need:.2f} for which it {'was given' if turn.grew else 'gave back'} workers"
        for name, turn in held.items()
    )
    return {name: workers for name, workers in wanted.items() if name not in held}, tuple(notes)


def _is_noise(last: Turn, workers: int, need: float, snapshot: DataflowSnapshot, noise: Noise) -> bool:
    grows = workers > snapshot.operator(last.operator).parallelism
    if grows == last.grew:
        return False
    if grows:
        return need < (1 + noise.change) * last.need and got_through(snapshot) >= noise.target_ratio
    return need > (1 - noise.change) * last.need
