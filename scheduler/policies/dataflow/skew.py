"""Operators with one worker as the bottleneck although they have workers enough: a mean over instances can't show that.

The busiest instance k of an operator gets the part `share(k)` of its records. It is a bottleneck when share(k) * arriving is over
its true rate while all instances together could process it. Rebalancing keys helps down to the floor: no instance can get less
than the mean, nor less than the hottest key.

>>> from .figures import InstanceFigures, OperatorFigures
>>> from .snapshot import Edge
>>> hot, cold = InstanceFigures(100, observed_processing_rate=90), InstanceFigures(100, observed_processing_rate=30)
>>> source, count = OperatorFigures("source", 1, source_rate=160), OperatorFigures.summed("count", [hot, cold])
>>> list(hot_operators(DataflowSnapshot((source, count), (Edge("source", "count"),)), {"count": 1.6}, tolerance=1.1))
['count']
"""

from __future__ import annotations

from collections.abc import Mapping

from ....balancer.snapshot import MOST
from .demand import whole_workers
from .figures import OperatorFigures
from .snapshot import DataflowSnapshot

_ROUNDING = 1e-9
"""The same tolerance as in `whole_workers`."""


def hot_operators(snapshot: DataflowSnapshot, needed: Mapping[str, float], tolerance: float) -> dict[str, str]:
    """Return the operators that a rebalance would help, each with the reason. `needed`: their workers, not rounded; `tolerance`: a
    worker with this multiple of the least possible load is hot.

    This excludes an operator with fewer workers than it needs, since joining workers get hot keys anyway, and one whose records
    are dealt, since it has no keys to place.
    """
    found = {}
    for name, need in needed.items():
        operator = snapshot.operator(name)
        share = hottest_share(operator)
        floor = max(1 / operator.parallelism, operator.hottest_key_share or 0.0)
        if operator.keyed and share is not None and overloaded(operator, need) and share > tolerance * floor:
            found[name] = (
                f"{name} has {operator.parallelism} workers and needs {need:.2f}, but its busiest gets {share:.0%} of the records "
                f"({floor:.0%} is the least possible): rebalance its keys"
            )
    return found


def overloaded(operator: OperatorFigures, need: float) -> bool:
    """Return True if the busiest instance gets more than it can process although the operator has the workers that it needs."""
    return whole_workers(need) <= operator.parallelism and capacity(operator, need) < 1 - _ROUNDING


def capacity(operator: OperatorFigures, need: float) -> float:
    """Return the multiple of its demand that an operator's workers can process, at most MOST. `need`: in workers. The busiest
    decides.
    """
    busiest = max(hottest_share(operator) or 0.0, 1 / operator.parallelism) * need
    return min(1 / busiest, MOST) if busiest > 0 else MOST


def hottest_share(operator: OperatorFigures) -> float | None:
    """Return the share of the operator's load that its busiest instance has, None if unknown.

    Load is useful time: records over the instance's true rate, so that an instance whose records cost more counts as busier.
    """
    loads = [one.utilisation for one in operator.instances if one.utilisation is not None]
    total = sum(loads)
    return max(loads) / total if total > 0 and operator.parallelism > 1 else None
