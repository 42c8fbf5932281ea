"""A balance plan: the key groups and hot keys that should change their worker, the keys to split or gather, the cost, and the
reason.

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

from ..engine.protocol.routing import RoutingTable
from ..engine.protocol.split_route import Dealt, SplitRoute
from ..engine.shown import Shown

MOST_MOVES = 8
"""The number of moves in a plan's printed form."""


@dataclass(frozen=True, slots=True)
class BalanceMove:
    """A move of a key group, or of a hot key, from worker `source` to worker `target`.

    A group takes along those of its keys that have no route of their own and no move of their own in the plan. A key whose source is its
    target stays where it is, with a route of its own, while its group goes.
    """

    source: int
    target: int
    group: int | None = None
    key: Hashable = None

    def to_dict(self) -> dict[str, Any]:
        """Return the move as a JSON object."""
        what = {"key": self.key} if self.group is None else {"group": self.group}
        return {**what, "source": self.source, "target": self.target}


@dataclass(frozen=True, slots=True)
class KeySplit:
    """The split of a join's hot key: its home and the workers `others` share it; rows of the side `dealt` are dealt over all of
    them.
    """

    key: Hashable
    home: int
    others: tuple[int, ...]
    dealt: Dealt

    def to_dict(self) -> dict[str, Any]:
        """Return the split as a JSON object."""
        return {"key": self.key, "home": self.home, "others": list(self.others), "dealt": self.dealt}


@dataclass(frozen=True, slots=True)
class BalancePlan(Shown):
    """A plan. `moves`: of key groups and hot keys; `splits`: hot keys to be shared by several workers; `gathers`: keys to be
    whole at their homes.

    `imbalance_before`, `imbalance_after`: max / mean load of the workers, at present and as predicted. `floor`: the least that
    any placement can reach, with the keys that are then split. `state_bytes`: state that changes its worker. `reason`: a sentence
    for people.
    """

    moves: tuple[BalanceMove, ...]
    imbalance_before: float
    imbalance_after: float
    floor: float
    state_bytes: int
    reason: str
    splits: tuple[KeySplit, ...] = ()
    gathers: tuple[Hashable, ...] = ()

    @property
    def changes(self) -> bool:
        """True if the plan changes anything."""
        return bool(self.moves or self.splits or self.gathers)

    def __str__(self) -> str:
        even = f"imbalance {self.imbalance_before:.2f} to {self.imbalance_after:.2f}, floor {self.floor:.2f}"
        lines = [f"plan of {len(self.moves)} moves, {self.state_bytes:,} bytes: {even}; {self.reason}"]
        for move in self.moves[:MOST_MOVES]:
            what = f"key {move.key!r}" if move.group is None else f"group {move.group}"
            lines.append(f"{what}: worker {move.source} to {move.target}")
        if len(self.moves) > MOST_MOVES:
            lines.append(f"and {len(self.moves) - MOST_MOVES} more")
        lines += [f"key {split.key!r}: shared by workers {', '.join(map(str, (split.home, *split.others)))}" for split in self.splits]
        return "\n".join([*lines, *(f"key {key!r}: no longer shared" for key in self.gathers)])

    def to_json(self) -> str:
        """Return the JSON that `evenflow plan balance` prints. A key that JSON can't hold becomes its `str`."""
        document = {
            "moves": [move.to_dict() for move in self.moves],
            **({"splits": [split.to_dict() for split in self.splits]} if self.splits else {}),
            **({"gathers": list(self.gathers)} if self.gathers else {}),
            "imbalance_before": self.imbalance_before,
            "imbalance_after": self.imbalance_after,
            "floor": self.floor,
            "state_bytes": self.state_bytes,
            "reason": self.reason,
        }
        return json.dumps(document, default=str, allow_nan=False)

    def table(self, current: RoutingTable, hash_of: Callable[[Hashable], int]) -> RoutingTable:
        """Return the routing table after the plan; `hash_of` gives a hot key's hash64."""
        groups, keys = current.groups.copy(), dict(current.keys)
        splits = dict(current.splits)
        for key in self.gathers:
            splits.pop(hash_of(key), None)
        for move in self.moves:
            if move.group is None:
                keys[hash_of(move.key)] = move.target
            else:
                groups[move.group] = move.target
        splits.update((hash_of(split.key), SplitRoute(split.home, split.others, split.dealt)) for split in self.splits)
        return RoutingTable(groups, keys, splits)
