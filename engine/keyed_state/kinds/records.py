"""The state of `process`: a record for each key, and an index of the next timers and expiries.

A key's record (states and timers) is stored in the state backend and moves with the key. The index is in memory, and is rebuilt
from the records that arrive. Invariant: the index has every timer of every record here. It may have obsolete ones too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import pyarrow as pa

from ...batch import Batch
from ...context import Context
from ...keys.encoding import key_values
from ...state_description import PartsChange
from ...typed_rows.field_types import UnfitError
from ...typed_states.value_types import ValueType
from .key_record import KeyRecord, pack_records, unpack_records
from .migration import Migration, marked, unmarked, version_of
from .objects import STATE, StateObjects
from .timers import Timers

AT_ONCE = 1_024
"""The number of keys that one call of the backend reads."""


class StateRecords(StateObjects):
    """The records of keys, and their index.

    `lives`: the time to live, in microseconds, of each value that has one, by name; `types`: the declared types. `migration` converts the
    plain values by name.
    """

    def __init__(
        self,
        context: Context,
        keys: tuple[str, ...],
        lives: Mapping[str, int],
        types: Mapping[str, ValueType],
        *,
        undoable: bool,
        migration: Migration | None = None,
    ) -> None:
        pack, unpack = (self._pack_typed, self._unpack_typed) if types else (pack_records, unpack_records)
        super().__init__(context, keys, pack, unpack, undoable=undoable, kind=b"records", migration=migration)
        self.value_types = types
        self.timers, self.processing_timers, self.expiries = Timers(), Timers(), Timers()
        self.timed = False
        """True if rows with event time were seen, or timers that such rows have set."""
        self._lives = dict(lives)
        self._expiring: set[Any] = set()
        """The keys in `expiries`."""

    @property
    def by_key(self) -> bool:
        """False: the index needs the timers of all keys."""
        return False

    def install(self, chunk: Batch) -> None:
        keys = self._install(chunk)
        records = self.read_keys(keys)
        for key in keys:
            record = records.get(key)
            if record is not None:
                for time in sorted(record.timers):
                    self.timers.add(time, key)
                for time, set_at in record.processing_timers.items():
                    self.processing_timers.add(time, key)
                    self.timed = self.timed or set_at is not None
                self.timed = self.timed or bool(record.timers)
                self._note_expiry(key, record)

    def users_parts(self, states: Sequence[KeyRecord]) -> Sequence[Any]:
        return [self.undeclared(record.values) for record in states]

    def undeclared(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the values of the states without a declared type."""
        return {name: value for name, value in values.items() if name not in self.value_types} if self.value_types else values

    def plain(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return values with those of declared types as plain ones. Raises UnfitError, naming the state, for one of another type."""
        return self._converted(values, "plain") if self.value_types else values

    def adapted(self, chunk: Batch, change: PartsChange) -> Batch:
        """Forget the values of states that the function no longer has, after renaming and migrating them."""
        keys, packed = key_values(self._columns(chunk.rows)), chunk.rows.column(STATE).to_pylist()
        records = [KeyRecord() if state is None else _unpacked(state) for state in self.current(keys, packed)]
        for record in records:
            for name in set(record.values) - set(change.now):
                del record.values[name]
                record.written.pop(name, None)
        place = chunk.rows.schema.get_field_index(STATE)
        states = pa.array([self.migration.mark + state for state in pack_records(records)], pa.binary())
        rows = chunk.rows.set_column(place, chunk.rows.schema.field(place), states)
        return chunk.with_rows(rows.filter(pa.array([bool(record) for record in records])))

    def current(self, keys: Sequence[Any], packed: Sequence[bytes | None]) -> list[bytes | None]:
        """Return the records of `keys` as this version of the code writes them; values of renamed states are under their new names."""
        states = super().current(keys, packed)
        return [state if state is None else self._renamed(state) for state in states] if self.migration.version.renamed else states

    def migrated(self, version: int, state: bytes) -> bytes | None:
        """Migrate the values of a record, which keeps its timers. A value that had no time of a write gets the newest one of the record."""
        assert self.migration.migrate is not None
        record = _unpacked(self._renamed(state))
        record.values = self.migration.migrate(version, record.values)
        newest = max(record.written.values(), default=None)
        written = {name: record.written.get(name, newest) for name in self._lives if name in record.values}
        record.written = {name: time for name, time in written.items() if time is not None}
        return next(pack_records([record])) if record else None

    def _renamed(self, state: bytes) -> bytes:
        """Return a packed record with its values under the states' new names."""
        names = self.migration.version.renamed
        if not names:
            return state
        record = _unpacked(state)
        old = [(new, former) for new, former in names.items() if former in record.values]
        for new, former in old:
            record.values[new] = record.values.pop(former)
            if former in record.written:
                record.written[new] = record.written.pop(former)
        return marked(version_of(state), next(pack_records([record]))) if old else state

    def settle(self, records: dict[Any, Any], key: Any, record: KeyRecord) -> bool:
        """Keep the record among those that were read, or forget it if it is empty. Return True if it was forgotten."""
        if record:
            records[key] = record
            if record.written:
                self._note_expiry(key, record)
            return False
        return records.pop(key, None) is not None

    def unexpired(self, record: KeyRecord, now: int) -> dict[str, Any]:
        """Return the values of a record that have not expired at `now`, by name."""
        expired = {name for name, end in record.ends(self._lives) if end <= now}
        return {name: value for name, value in record.values.items() if name not in expired}

    def expire(self, watermark: int) -> None:
        """Forget values that no later row and no timer can see."""
        while keys := self.expiries.due(watermark, AT_ONCE):
            records = self.read_keys(keys)
            loaded, leaving = frozenset(keys), self.leaving(keys)
            while (due := self.expiries.pop(watermark, loaded)) is not None:
                key = due[1]
                self._expiring.discard(key)
                record = records.get(key)
                if record is not None and key not in leaving:
                    record.expire(self._lives, watermark)
                    self.settle(records, key, record)
            self.written(0)

    def forget_void(self) -> None:
        """Remove cancelled timers and forgotten keys from the index, once they may be most of it."""
        if self.timers.crowded:
            standing = {key: frozenset(record.timers) for key, record in self._records(self.timers.keys())}
            self.timers.retain(lambda at, key: at in standing.get(key, ()))
        if self.processing_timers.crowded:
            set_now = {key: frozenset(record.processing_timers) for key, record in self._records(self.processing_timers.keys())}
            self.processing_timers.retain(lambda at, key: at in set_now.get(key, ()))
        if self.expiries.crowded:
            there = {key for key, record in self._records(self.expiries.keys()) if record.written}
            self.expiries.retain(lambda _, key: key in there)
            self._expiring = there

    def _converted(self, values: dict[str, Any], how: Literal["plain", "value"]) -> dict[str, Any]:
        found = dict(values)
        for name in self.value_types.keys() & values.keys():
            try:
                found[name] = getattr(self.value_types[name], how)(values[name])
            except UnfitError as error:
                raise UnfitError(f"the state `{name}` is declared as {self.value_types[name].name}: {error}") from error
        return found

    def _pack_typed(self, records: Iterable[KeyRecord]) -> Iterator[bytes]:
        return pack_records(replace(record, values=self._converted(record.values, "plain")) for record in records)

    def _unpack_typed(self, packed: Sequence[bytes]) -> list[KeyRecord]:
        records = unpack_records(packed)
        for record in records:
            record.values = self._converted(record.values, "value")
        return records

    def _note_expiry(self, key: Any, record: KeyRecord) -> None:
        """Note the time at which the first value of the record expires."""
        ends = record.ends(self._lives)
        if ends and key not in self._expiring:
            self._expiring.add(key)
            self.expiries.add(min(end for _, end in ends), key)

    def _records(self, keys: list[Any]) -> Iterator[tuple[Any, KeyRecord]]:
        """Yield the keys among these that have a record, with their records."""
        for some in (keys[first : first + AT_ONCE] for first in range(0, len(keys), AT_ONCE)):
            records = self.looked_up(some)
            yield from ((key, records[key]) for key in some if key in records)


def _unpacked(state: bytes) -> KeyRecord:
    """Return a record with plain values, of any version."""
    (record,) = unpack_records([unmarked(state)])
    return record
