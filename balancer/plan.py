"""A balance plan: the key groups and hot keys that should change their worker, the cost, and the reason.

A plan is data. `BalancePlan.table` converts it to the target routing table; `balancer/strategies.py` plans the steps to it.

>>> plan = BalancePlan((BalanceMove(1, 3, group=0), BalanceMove(1, 2, key="JFK")), 2.5, 1.2, 1.2, 4160, "worker 1 is hot")
>>> print(plan.to_json()[:87])
{"moves": [{"group": 0, "source": 1, "target": 3}, {"key": "JFK", "source": 1, "target"
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from ..engine.errors import RequestError
from ..engine.protocol.routing import RoutingTable


@dataclass(frozen=True, slots=True)
class BalanceMove:
    """A key group, or a hot key, goes from worker `source` to worker `target`.

    A group takes along those of its keys that have no route of their own and no move of their own in the plan. A key whose source is its
    target stays where it is, with a route of its own, while its group goes.

    `share`: the part of the key's records that go to `target` from now on. Only `two_choices` plans less than 1: such a key is processed by
    several workers at once, which works where their results can be merged (aggregates that are combined again downstream).
    """

    source: int
    target: int
    group: int | None = None
    key: Hashable = None
    share: float = 1.0

    def to_dict(self) -> dict[str, Any]:
        """The move as a JSON object; without `share` if that is 1."""
        what = {"key": self.key} if self.group is None else {"group": self.group}
        part = {} if self.share == 1.0 else {"share": self.share}
        return {**what, "source": self.source, "target": self.target, **part}


@dataclass(frozen=True, slots=True)
class BalancePlan:
    """`imbalance_before`, `imbalance_after`: max / mean load of the workers, at present and as predicted. `floor`: the least that any
    placement with one owner per key can reach. `state_bytes`: state that changes its worker. `reason`: a sentence for people.
    """

    moves: tuple[BalanceMove, ...]
    imbalance_before: float
    imbalance_after: float
    floor: float
    state_bytes: int
    reason: str

    def to_json(self) -> str:
        """The JSON that `evenflow plan balance` prints. A key that JSON can't hold becomes its `str`."""
        document = {
            "moves": [move.to_dict() for move in self.moves],
            "imbalance_before": self.imbalance_before,
            "imbalance_after": self.imbalance_after,
            "floor": self.floor,
            "state_bytes": self.state_bytes,
            "reason": self.reason,
        }
        return json.dumps(document, default=str, allow_nan=False)

    def table(self, current: RoutingTable, hash_of: Callable[[Hashable], int]) -> RoutingTable:
        """The routing table after the plan; `hash_of` gives a hot key's hash64.

        Raises RequestError for a plan that splits a key, because a table gives each key one owner.
        """
        groups, keys = current.groups.copy(), dict(current.keys)
        for move in self.moves:
            if move.share != 1.0:
                raise RequestError(f"the plan splits key {move.key!r} over several workers: a routing table gives each key one owner")
            if move.group is None:
                keys[hash_of(move.key)] = move.target
            else:
                groups[move.group] = move.target
        return RoutingTable(groups, keys, current.splits)
