"""Faults in states that change their shape between versions of a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from evenflow.engine.keyed_state.kinds.key_record import KeyRecord, pack_records
from evenflow.engine.keyed_state.kinds.migration import Migration, unmarked
from evenflow.engine.keyed_state.kinds.objects import StateObjects
from evenflow.engine.keyed_state.kinds.records import StateRecords, _unpacked

Patch = pytest.MonkeyPatch


def state_is_migrated_twice(patch: Patch) -> None:
    migrated = StateRecords.migrated

    def twice(self: Any, version: int, state: bytes) -> bytes | None:
        once = migrated(self, version, state)
        return once if once is None or version == 1 else migrated(self, version, once)

    patch.setattr(StateRecords, "migrated", twice)


def chunk_is_installed_unmigrated(patch: Patch) -> None:
    def as_it_is(self: Any, keys: Sequence[Any], packed: Sequence[bytes | None]) -> list[bytes | None]:
        return [state if state is None else self.migration.mark + unmarked(state) for state in packed]

    patch.setattr(StateObjects, "current", as_it_is)


def versions_are_not_saved(patch: Patch) -> None:
    patch.setattr(Migration, "mark", property(lambda self: b""))
    patch.setattr(Migration, "of_this_version", lambda self, packed: self.version.number == 1)


def migrated_records_lose_their_timers(patch: Patch) -> None:
    migrated = StateRecords.migrated

    def without_timers(self: Any, version: int, state: bytes) -> bytes | None:
        now = migrated(self, version, state)
        values = KeyRecord() if now is None else _unpacked(now)
        return next(pack_records([KeyRecord(values.values, values.written)])) if values.values else None

    patch.setattr(StateRecords, "migrated", without_timers)


def renamed_states_are_forgotten(patch: Patch) -> None:
    patch.setattr(StateRecords, "_renamed", lambda self, state: state)
