"""Judges the load of a stage's workers: is it uneven, and could another placement of whole keys improve it?

>>> load = OperatorLoad({"count-0": 0.9, "count-1": 0.1}, {}, (("JFK", 80), ("BOS", 5)), records=100)
>>> judged(load, threshold=1.2, least_busy=0.05).kind
'stuck'
>>> print(judged(load, threshold=1.2, least_busy=0.05).text.partition(": ")[2])
key 'JFK' alone is 80% of the load, so its worker is busy for 80% of its time or more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..scheduler.load.metrics import OperatorLoad

Kind = Literal["idle", "even", "better", "stuck"]


@dataclass(frozen=True, slots=True)
class Evenness:
    """A judgement of a load. `kind`: `better` if it is uneven and moves can improve it, `stuck` if they can't. `text`: a sentence that
    says so.
    """

    kind: Kind
    text: str


def judged(load: OperatorLoad, threshold: float, least_busy: float) -> Evenness:
    """Judge a load.

    `threshold`: max / mean over the floor at which the job calls a load uneven. `least_busy`: the share of its time that the hottest
    worker must be busy for that to matter.
    """
    mean = sum(load.workers.values()) / max(len(load.workers), 1)
    hottest = max(load.workers.values(), default=0.0)
    name = max(load.workers, key=lambda worker: load.workers[worker], default="")
    if hottest < least_busy:
        return Evenness("idle", f"Little to do: no worker is busy for more than {_share(least_busy)} of its time.")
    if len(load.workers) == 1:
        return Evenness("even", f"One worker, busy for {_share(hottest)} of its time.")
    if load.imbalance > threshold * load.floor:
        best = f"{name} is busy for {_share(hottest)} of its time; the best placement reaches {_share(mean * load.floor)}"
        return Evenness("better", f"Uneven, and can be better: {best}.")
    if load.imbalance <= threshold:
        return Evenness("even", f"Even: the hottest worker has {load.imbalance:.2f} times the mean, and {threshold:g} is still even.")
    key, records = next(((key, count) for key, count in load.hot_keys if key not in load.split), (None, 0))
    share = records / max(load.records, 1)
    stuck = f"key {key!r} alone is {_share(share)} of the load, so its worker is busy for {_share(mean * load.floor)} of its time or more"
    split = f" Split, it could be {load.floor_with_split:.2f} times the mean." if load.floor_with_split < load.floor else ""
    return Evenness("stuck", f"Uneven, and no placement of whole keys is better: {stuck}.{split}")


def _share(part: float) -> str:
    return f"{part:.0%}" if part >= 0.0995 else f"{part:.1%}"
