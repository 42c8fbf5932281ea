"""Faults in a balancer's decisions about hot keys of joins. Each breaks it in a few lines."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.balancer.plan import BalancePlan
from evenflow.engine.keys.load import KeyLoad
from evenflow.engine.protocol.routing import RoutingTable
from evenflow.engine.protocol.split_route import SplitRoute
from evenflow.scheduler.parts.balancing import Balancing

Patch = pytest.MonkeyPatch

OTHER = {"left": "right", "right": "left"}


def side_that_must_not_be_dealt_is_dealt(patch: Patch) -> None:
    table = BalancePlan.table

    def swapped(self: Any, current: Any, hash_of: Any) -> RoutingTable:
        target = table(self, current, hash_of)
        new = {key: route for key, route in target.splits.items() if key not in current.splits}
        other: dict[int, SplitRoute] = {key: SplitRoute(route.home, route.others, OTHER[route.dealt]) for key, route in new.items()}  # type: ignore[arg-type]
        return RoutingTable(target.groups, target.keys, {**target.splits, **other})

    patch.setattr(BalancePlan, "table", swapped)


def records_of_one_side_count_for_the_other(patch: Patch) -> None:
    add_keys = KeyLoad.add_keys
    patch.setattr(KeyLoad, "add_keys", lambda self, keys, counts, side=None: add_keys(self, keys, counts, OTHER.get(side)))


def keys_are_split_while_others_move(patch: Patch) -> None:
    decide = Balancing.decide
    patch.setattr(Balancing, "decide", lambda self, table, *, moving: decide(self, table, moving=False))


def upstream_deals_rows_of_a_gathered_key_on(patch: Patch) -> None:
    """Keep dealing rows of a key to its former sharers, although the table has the key only at its home."""
    after = RoutingTable.after

    def still_split(self: Any, moves: Any) -> RoutingTable:
        target = after(self, moves)
        return RoutingTable(
            target.groups, target.keys, {**target.splits, **{k: r for k, r in self.splits.items() if k not in target.splits}}
        )

    patch.setattr(RoutingTable, "after", still_split)
