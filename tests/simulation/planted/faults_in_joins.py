"""Faults in joins: in the rows that they keep, forget, match, move and save. Each breaks a core in a few lines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from evenflow.engine.joins.row_log import RowLog
from evenflow.engine.joins.segment import Segment
from evenflow.engine.joins.window_rows import FixedWindows
from evenflow.engine.keyed_state.kinds import join_changes
from evenflow.engine.keyed_state.kinds.join_rows import JoinRows
from evenflow.engine.keys import equality
from evenflow.engine.protocol.elements import MIN_TIME
from evenflow.engine.task.awaited_columns import AwaitedColumns
from evenflow.engine.task.handover import Handovers
from evenflow.engine.task.hash_exchange import HashExchange
from evenflow.engine.task.outputs import Outputs

Patch = pytest.MonkeyPatch


def rows_are_forgotten_before_the_others_are_decided(patch: Patch) -> None:
    forget = RowLog.forget
    patch.setattr(RowLog, "forget", lambda self, before: forget(self, before + 500_000 if before < 2**62 else before))


def row_is_not_kept_once_it_has_a_partner(patch: Patch) -> None:
    append = JoinRows.append

    def alone(self: Any, side: Any, block: Any) -> None:
        others = [log for other, log in self.logs.items() if other is not side]
        known = np.concatenate([np.zeros(0, np.uint64), *(part.hashes for part in others[0].blocks())])
        append(self, side, block.filter(~np.isin(block.hashes, known)) if len(block) else block)

    patch.setattr(JoinRows, "append", alone)


def last_time_of_the_bounds_is_left_out(patch: Patch) -> None:
    ranges = Segment.ranges
    patch.setattr(Segment, "ranges", lambda self, hashes, low, high: ranges(self, hashes, low, None if high is None else high - 1))


def rows_that_are_due_are_decided_once_more(patch: Patch) -> None:
    due_in = RowLog.due_in
    patch.setattr(RowLog, "due_in", lambda self, start, end: due_in(self, start - 100_000 if start > 0 else start, end))


def null_keys_are_equal(patch: Patch) -> None:
    patch.setattr("evenflow.engine.joins.matching.without_nulls", lambda rows, keys: None)
    patch.setattr("evenflow.engine.joins.matching.Matcher._equal", lambda self, block, found, reached: np.ones(len(found.probed), np.bool_))


def keys_that_left_stay_among_the_rows_that_came(patch: Patch) -> None:
    patch.setattr("evenflow.engine.keyed_state.kinds.join_rows.staying", lambda came, move, key_groups: tuple(came))
    patch.setattr(join_changes, "staying", lambda came, move, key_groups: tuple(came))


def rows_that_a_move_brought_are_not_saved(patch: Patch) -> None:
    install = JoinRows.install

    def unnoted(self: Any, chunk: Any) -> None:
        came = list(self._came)
        install(self, chunk)
        self._came = came

    patch.setattr(JoinRows, "install", unnoted)


def row_that_leaves_also_stays(patch: Patch) -> None:
    cut_out = RowLog.cut_out

    def all_but_one(self: Any, leaving: Any) -> Any:
        gone = cut_out(self, leaving)
        for block in gone[:1]:
            self.append(block.slice(len(block) - 1, 1))
        return gone

    patch.setattr(RowLog, "cut_out", all_but_one)


def new_owner_is_not_told_the_columns(patch: Patch) -> None:
    patch.setattr(JoinRows, "column_chunks", lambda self: iter(()))
    attach = HashExchange.attach

    def silently(self: Any, channel: int, out: list[Any]) -> None:
        self._told = None
        attach(self, channel, out)

    patch.setattr(HashExchange, "attach", silently)


def only_one_exchange_of_a_self_join_switches(patch: Patch) -> None:
    switch = Outputs.switch

    def the_last(self: Any, version: int) -> None:
        step, exchanges = self._steps[version]
        self._steps[version] = step, exchanges[-1:]
        switch(self, version)

    patch.setattr(Outputs, "switch", the_last)


def window_is_joined_before_its_last_rows_came(patch: Patch) -> None:
    complete = FixedWindows._ends
    patch.setattr(FixedWindows, "_ends", lambda self, logs, after, until: complete(self, logs, after, min(until + 100_000, 2**62)))


def rows_without_a_partner_do_not_wait_for_the_columns(patch: Patch) -> None:
    patch.setattr(AwaitedColumns, "hold", lambda self, channels: False)


def new_owner_keeps_its_own_event_time(patch: Patch) -> None:
    patch.setattr(Handovers, "came_at", property(lambda self: MIN_TIME, lambda self, time: None), raising=False)


def nans_are_many_keys(patch: Patch) -> None:
    patch.setattr("evenflow.engine.keys.equality._equal_floats", lambda left, right: equality._mask(pc.equal(left, right)))
