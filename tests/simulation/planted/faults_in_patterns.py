"""Faults in patterns: in the order of rows, in timers that move, and in saved partial matches. Each breaks a core in a few lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from evenflow.engine.keyed_state.kinds.objects import StateObjects
from evenflow.engine.keyed_state.kinds.records import StateRecords
from evenflow.engine.operators.processing.match_pattern import MatchPatternInstance
from evenflow.engine.patterns.runs import Runs

Patch = pytest.MonkeyPatch


def rows_are_matched_in_the_order_of_their_arrival(patch: Patch) -> None:
    patch.setattr("evenflow.engine.operators.processing.match_pattern._time", lambda row: 0)


def rows_are_matched_before_the_watermark_has_passed_them(patch: Patch) -> None:
    matched = MatchPatternInstance._matched
    patch.setattr(
        MatchPatternInstance, "_matched", lambda self, key, record, watermark: matched(self, key, record, watermark + 500_000_000)
    )


def keys_that_move_lose_their_timers(patch: Patch) -> None:
    def untimed(self: Any, chunk: Any) -> None:
        self._install(chunk)

    assert StateRecords.install is not StateObjects.install
    patch.setattr(StateRecords, "install", untimed)


def partial_matches_are_not_saved(patch: Patch) -> None:
    begin = MatchPatternInstance.__init__

    def without_runs(self: Any, operator: Any, context: Any) -> None:
        begin(self, operator, context)
        pack = self.state._pack

        def packed(records: Iterable[Any]) -> Iterator[bytes]:
            kept = [(record, record.values.get("runs")) for record in records]
            for record, runs in kept:
                if runs:
                    record.values["runs"] = []
            try:
                yield from list(pack([record for record, _ in kept]))
            finally:
                for record, runs in kept:
                    if runs:
                        record.values["runs"] = runs

        self.state._pack = packed

    patch.setattr(MatchPatternInstance, "__init__", without_runs)


def match_does_not_wait_for_earlier_partial_ones(patch: Patch) -> None:
    settle = Runs._settle

    def at_once(self: Any, at: int) -> None:
        runs, self.runs = self.runs, []
        settle(self, at)
        self.runs = runs

    patch.setattr(Runs, "_settle", at_once)
