"""The bounds of every policy: the fewest and most workers of an operator, and the largest change of one decision.

Invariant: the result is within the bounds of the operator and of the settings, differs from the present numbers, and is the same
for all operators of a chain.

>>> from .dataflow.figures import OperatorFigures
>>> from .dataflow.settings import PolicySettings
>>> count = OperatorFigures("count", 2, key_groups=8)
>>> within_bounds(DataflowSnapshot((count,)), {"count": 20})
({'count': 8}, ('count: 20 workers are out of bounds, 8 are not',))
>>> within_bounds(DataflowSnapshot((count,), settings=PolicySettings(max_change=1)), {"count": 5})[0]
{'count': 3}
"""

from __future__ import annotations

from collections.abc import Mapping

from ...balancer.snapshot import MAX_WORKERS
from .dataflow.figures import OperatorFigures
from .dataflow.settings import PolicySettings
from .dataflow.snapshot import DataflowSnapshot


def within_bounds(snapshot: DataflowSnapshot, wanted: Mapping[str, int]) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return the changes in `wanted`, within the bounds, and a note for each number that was not allowed.

    A chain gets as many workers as the one of its operators that wants the most.
    """
    changed: dict[str, int] = {}
    notes: list[str] = []
    for name in snapshot.order:
        chain = snapshot.chained(name)
        workers = max((wanted[other] for other in chain if other in wanted), default=None)
        if workers is None:
            continue
        operator = snapshot.operator(name)
        allowed = _allowed(workers, [snapshot.operator(other) for other in chain], snapshot.settings)
        if allowed != workers:
            notes.append(f"{name}: {workers} workers are out of bounds, {allowed} are not")
        if allowed != operator.parallelism:
            changed[name] = allowed
    return changed, tuple(notes)


def largest(operator: OperatorFigures, settings: PolicySettings) -> int:
    """Return the most workers that an operator may have; never more than a routing table can name."""
    bounds = [bound for bound in (operator.max_parallelism, operator.key_groups, settings.max_parallelism) if bound is not None]
    return min([*bounds, MAX_WORKERS])


def smallest(operator: OperatorFigures, settings: PolicySettings) -> int:
    """Return the fewest workers that an operator may have; never more than `largest`."""
    least = settings.min_parallelism if operator.min_parallelism is None else operator.min_parallelism
    return min(least, largest(operator, settings))


def _allowed(workers: int, chain: list[OperatorFigures], settings: PolicySettings) -> int:
    now = chain[0].parallelism
    if settings.max_change is not None:
        workers = min(max(workers, now - settings.max_change), now + settings.max_change)
    least = max(smallest(operator, settings) for operator in chain)
    return min(max(workers, least), *(largest(operator, settings) for operator in chain))
