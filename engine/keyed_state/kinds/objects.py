"""Python objects as states of keys, in memory or in a backend, for operators whose states are the user's.

A batch is processed between `read` and `written`. With state in memory, `read` returns the dict itself, without copies. With
another backend it returns a dict of the requested keys, and `written` writes changes back.

State is moved and saved as batches of the key columns and the packed state of each key. A null in place of the state means that
the new owner finds it in the backend. States of an older version of the user's code are migrated when they are installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import repeat
from operator import is_not
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ....state.backends.memory import MemoryBackend
from ....state.backends.opening import open_backend
from ....state.packing import first_foreign, pack_values, unpack_values
from ...batch import Batch
from ...context import Context
from ...errors import RecordError, shown
from ...keys.codec import KeyCodec
from ...keys.encoding import KeyTypes, encode_keys, key_column, key_groups, key_hashes, key_values
from ...protocol.routing import Move
from ...snapshots.chain import replacing
from ...snapshots.changes import Changes, KeyChanges
from ...state_description import PartsChange
from ...typed_rows.field_types import UnfitError
from ...typed_states.value_types import ValueType
from ..base import KeyedState, StateTransfer
from ..stored.backend_transfer import BackendTransfer
from .migration import Migration, marked, unmarked, version_of
from .state_check import unsaveable

STATE = "__state"
KIND = b"evenflow.kind"
"""Schema metadata of a chunk of states."""


class StateObjects(KeyedState):
    """Python objects by key; `keys` names the key columns. `undoable`: `undo` may be called. `declared`: their declared type.
    `migration`: from older versions of the user's code.

    `pack` and `unpack` convert states to bytes and back. `kind` names the type that `unpack` returns, so that states of different
    kinds with the same packing are never confused.
    """

    whole_keys = True

    def __init__(
        self,
        context: Context,
        keys: tuple[str, ...],
        pack: Callable[[Iterable[Any]], Iterator[bytes]] = pack_values,
        unpack: Callable[[Sequence[bytes]], list[Any]] = unpack_values,
        *,
        undoable: bool = False,
        kind: bytes = b"values",
        declared: ValueType | None = None,
        migration: Migration | None = None,
    ) -> None:
        self.context, self.keys = context, keys
        self.migration = migration or Migration()
        self.types = KeyTypes(context.name, keys)
        self.codec = KeyCodec(self.types)
        self.declared = declared
        self._pack, self._unpack, self._kind = pack, unpack, kind
        if declared is not None:
            self._pack = lambda states: pack_values(map(declared.plain, states))
            self._unpack = lambda packed: declared.values(unpack_values(packed))
        if mark := self.migration.mark:
            plainly_packed, plainly_unpacked = self._pack, self._unpack
            self._pack = lambda states: (mark + state for state in plainly_packed(states))
            self._unpack = lambda packed: plainly_unpacked([unmarked(state) for state in packed])
        self.backend = open_backend(context.state, context.name, context.index, context.key_groups, self.packed)
        self._memory = self.backend if isinstance(self.backend, MemoryBackend) else None
        self._transfers: list[BackendTransfer] = []
        self._working: dict[Any, Any] = {}
        self._undoable = undoable
        self._before: tuple[list[Any], dict[Any, bytes]] = [], {}
        self._read: tuple[list[Any], list[int], list[bytes], list[bytes | None]] = [], [], [], []

    @property
    def by_key(self) -> bool:
        return self._memory is not None and not self.migration.converts

    def unnoted(self) -> AbstractContextManager[None]:
        return self.backend.unnoted()

    def read(self, rows: pa.RecordBatch) -> dict[Any, Any]:
        """Return the states of at least the keys of `rows`; keys without a state are missing.

        Change the dict, then call `written`.
        """
        if self._memory is None:
            return self._fetch(encode_keys(rows, self.keys, self.context.name).columns)
        columns = self._columns(rows)
        self.types.learn(columns)
        if self._memory.watched:
            self._memory.before(key_values(columns), lambda: key_groups(columns, self.context.key_groups, self.context.name))
        if self._undoable:
            self._note_before(key_values(columns))
        return self._memory.objects

    def undo(self) -> None:
        """Restore the states that were last read, regardless of changes. Only before `written`, and if `undoable`."""
        if self._memory is not None:
            keys, packed = self._before
            for key in keys:
                if key not in packed:
                    self._memory.objects.pop(key, None)
            self._memory.objects.update(zip(packed, self._unpack(list(packed.values())), strict=True))

    def copied(self, key: Any, state: Any) -> Any:
        """Return a deep copy of `state`. Raises RecordError naming the key if it can't be packed."""
        return self._unpack(self.packed([key], [state]))[0]

    def read_keys(self, keys: list[Any]) -> dict[Any, Any]:
        """Return what `read` does, for keys passed as values."""
        if self._memory is None:
            return self._fetch(self.types.columns(keys))
        self._memory.before(keys, lambda: self._groups(self.types.columns(keys)))
        return self._memory.objects

    def looked_up(self, keys: list[Any]) -> dict[Any, Any]:
        """Return what `read_keys` does, for reading only."""
        return self._fetch(self.types.columns(keys)) if self._memory is None else self._memory.objects

    def everything(self) -> tuple[list[pa.Array], list[Any]]:
        """Return the key columns and the states of all keys, of states in memory; no columns before the first key."""
        assert self._memory is not None
        objects = self._memory.objects
        return self.columns_of(list(objects)), list(objects.values())

    def written(self, added: int) -> None:
        """Write back the states that were read and changed; `added` keys of the dict are new.

        Raises RecordError naming the key of a state that can't be packed.
        """
        if self._memory is None:
            self._write_back()
        elif added:
            keys = self._memory.newest(added)
            self._memory.note_new(self._groups(self.types.columns(keys)), keys)

    def depart(self, move: Move) -> StateTransfer:
        transfer = BackendTransfer(self, move)
        self._transfers.append(transfer)
        return transfer

    def leaving(self, keys: Sequence[Any]) -> frozenset[Any]:
        """Return the keys among these that were given up, although their states may still be here: timers must not touch them."""
        self._transfers = [transfer for transfer in self._transfers if not transfer.over]
        if not self._transfers:
            return frozenset()
        hashes = key_hashes(self.types.columns(list(keys)), self.context.name)
        selected = np.any([transfer.move.selects(hashes, self.context.key_groups) for transfer in self._transfers], axis=0)
        return frozenset(keys[place] for place in np.flatnonzero(selected).tolist())

    def install(self, chunk: Batch) -> None:
        self._install(chunk)

    def _install(self, chunk: Batch) -> list[Any]:
        """Install a chunk and return its keys."""
        columns = self._columns(chunk.rows)
        self.types.learn(columns)
        sent: list[bytes | None] = chunk.rows.column(STATE).to_pylist()
        groups, keys = self._groups(columns), key_values(columns)
        packed = self.current(keys, sent)
        states = [value for value in packed if value is not None]
        if self._memory is not None and len(states) == len(packed):
            self._memory.put_many(groups, keys, self._unpacked(keys, states))
            return keys
        given = [place for place, value in enumerate(packed) if value is not None]
        if self._memory is not None:
            there = [keys[i] for i in given]
            self._memory.put_many([groups[i] for i in given], there, self._unpacked(there, states))
            return keys
        places = self.codec.pack(columns)
        if None in sent:
            self.backend.take_over([group for group, value in zip(groups, sent, strict=True) if value is None])
            self.backend.note(groups, places)
            if self.migration.converts:
                passed = [place for place, value in enumerate(sent) if value is None]
                self._found([keys[i] for i in passed], [groups[i] for i in passed], [places[i] for i in passed])
        if given:
            self.backend.put_many([groups[i] for i in given], [places[i] for i in given], states)
        return keys

    def current(self, keys: Sequence[Any], packed: Sequence[bytes | None]) -> list[bytes | None]:
        """Return the packed states of `keys` as this version of the code writes them; None for none, and if the migration forgets one.

        Raises RecordError, naming the key and both versions, for a state that the code can't read, and for a migration that fails.
        """
        if self.migration.of_this_version([state for state in packed if state is not None]):
            return list(packed)
        number = self.migration.version.number
        return [
            state if state is None or version_of(state) == number else self._migrated(key, state)
            for key, state in zip(keys, packed, strict=True)
        ]

    def _migrated(self, key: Any, state: bytes) -> bytes | None:
        then, version, operator = version_of(state), self.migration.version, self.context.name
        problem = version.problem(then)
        if problem is not None:
            raise RecordError(operator, problem, key=key)
        try:
            packed = self.migrated(then, unmarked(state))
        except Exception as error:
            problem = str(error) if isinstance(error, UnfitError) else f"raised {shown(error)}"
            raise RecordError(
                operator, f"migrate_state of `{version.code}`, from version {then} to version {version.number}: {problem}", key=key
            ) from error
        return None if packed is None else marked(version.number, packed)

    def migrated(self, version: int, state: bytes) -> bytes | None:
        """Return a packed state of an older version, both without marks, as one of this version; None if it is forgotten."""
        assert self.migration.migrate is not None
        (plain,) = unpack_values([state])
        now = self.migration.migrate(version, plain)
        return None if now is None else next(pack_values([now]))

    def check(self, schema: pa.Schema) -> None:
        """Accept chunks without a kind too: older versions did not note it."""
        kind = (schema.metadata or {}).get(KIND, self._kind)
        if kind != self._kind:
            raise TypeError(f"it is made of {kind.decode()}, expected {self._kind.decode()}")

    def snapshot(self) -> Iterator[Batch]:
        return (self._batch(self.columns_of(keys), values) for keys, values in self.backend.snapshot())

    def changes(self) -> Changes | None:
        noted = self.backend.changes()
        return None if noted is None else KeyChanges(noted)

    def delta(self, changes: Changes) -> Iterator[Batch]:
        assert isinstance(changes, KeyChanges)
        return (batch for keys, values in self.backend.delta(changes.keys) for batch in self._replacing(keys, values))

    def take(self, groups: Sequence[int], keys: Sequence[Any]) -> Batch | None:
        """Remove and return the states of the keys (in the backend's form) that are still here."""
        values = self.backend.take_many(groups, keys)
        if not all(map(is_not, values, repeat(None))):
            here = [place for place, value in enumerate(values) if value is not None]
            keys, values = [keys[i] for i in here], [values[i] for i in here]
        if not values:
            return None
        return self._batch(self.columns_of(keys), values if self._memory is None else self.packed(keys, values))

    def named(self, keys: Sequence[Any]) -> Batch:
        """Return keys without their states, which the new owner finds in the backend."""
        return self._batch(self.columns_of(keys), [None] * len(keys))

    def introduced(self, keys: Sequence[Any]) -> Batch | None:
        """Return None: a state needs no description."""
        return None

    def backend_groups(self, key_groups: Sequence[int]) -> list[int]:
        """Return the key groups themselves."""
        return list(key_groups)

    def places(self, columns: Sequence[pa.Array]) -> tuple[list[int], list[Any]]:
        """Return key columns as groups and keys of the backend."""
        keys = key_values(columns) if self._memory is not None else self.codec.pack(columns)
        return self._groups(list(columns)), keys

    def hashes(self, keys: Sequence[Any]) -> npt.NDArray[np.uint64]:
        """Return the hashes of keys of the backend."""
        return key_hashes(self.columns_of(keys), self.context.name)

    def columns_of(self, keys: Sequence[Any]) -> list[pa.Array]:
        """Return keys of the backend as key columns."""
        return self.types.columns(list(keys)) if self._memory is not None else self.codec.columns(keys)

    def packed(self, keys: Sequence[Any], states: Sequence[Any]) -> list[bytes]:
        """Return the packed states. Raises RecordError naming the key of one that can't be packed."""
        wrong = first_foreign(self.users_parts(states))
        if wrong is not None:
            raise self._refused(keys[wrong], states[wrong])
        packed: list[bytes] = []
        try:
            packed.extend(self._pack(states))
        except (TypeError, ValueError, OverflowError) as error:
            raise self._refused(keys[len(packed)], states[len(packed)], error) from error
        return packed

    def users_parts(self, states: Sequence[Any]) -> Sequence[Any]:
        """Return the parts of the states that the user's function wrote and that have no declared type."""
        return states if self.declared is None else ()

    def _refused(self, key: Any, state: Any, error: Exception | None = None) -> RecordError:
        problem = f"the state can't be saved: {error}" if isinstance(error, UnfitError) else unsaveable(self.users_parts([state])[0])
        return RecordError(self.context.name, problem, key=key, record=state)

    def _unpacked(self, keys: Sequence[Any], packed: Sequence[bytes]) -> list[Any]:
        """Return saved states. Raises RecordError naming the key of one that doesn't fit the declared type."""
        try:
            return self._unpack(packed)
        except UnfitError as error:
            for key, value in zip(keys, packed, strict=True):
                try:
                    self._unpack([value])
                except UnfitError as unfit:
                    raise RecordError(self.context.name, f"a saved state can't be read: {unfit}", key=key) from error
            raise

    def adapted(self, chunk: Batch, change: PartsChange) -> Batch:
        """Return the chunk: an object is made with the defaults of new fields when its state is read."""
        return chunk

    @property
    def nbytes(self) -> int:
        return self.backend.nbytes()

    def close(self) -> None:
        self.backend.close()

    def _columns(self, rows: pa.RecordBatch) -> list[pa.Array]:
        return [key_column(rows, key, self.context.name) for key in self.keys]

    def _groups(self, columns: list[pa.Array]) -> list[int]:
        groups: list[int] = key_groups(columns, self.context.key_groups, self.context.name).tolist()
        return groups

    def _note_before(self, keys: list[Any]) -> None:
        assert self._memory is not None
        distinct = list(dict.fromkeys(keys))
        here = [key for key in distinct if key in self._memory.objects]
        self._before = distinct, dict(zip(here, self.packed(here, [self._memory.objects[key] for key in here]), strict=True))

    def _fetch(self, columns: list[pa.Array]) -> dict[Any, Any]:
        self.types.learn(columns)
        keys, groups, places = key_values(columns), self._groups(columns), self.codec.pack(columns)
        found = self._found(keys, groups, places) if self.backend.passes_on else self.backend.get_many(groups, places)
        self._read = keys, groups, places, found
        here = [(key, value) for key, value in zip(keys, found, strict=True) if value is not None]
        there = [key for key, _ in here]
        self._working = dict(zip(there, self._unpacked(there, [value for _, value in here]), strict=True))
        return self._working

    def _found(self, keys: Sequence[Any], groups: Sequence[int], places: Sequence[bytes]) -> list[bytes | None]:
        """Return states in a backend into which other workers may have written them; those of an older version are replaced first."""
        found = self.backend.get_many(groups, places)
        now = self.current(keys, found)
        new = [(i, state) for i, state in enumerate(now) if state is not None and state is not found[i]]
        if new:
            self.backend.put_many([groups[i] for i, _ in new], [places[i] for i, _ in new], [state for _, state in new])
        gone = [i for i, state in enumerate(now) if state is None and found[i] is not None]
        if gone:
            self.backend.delete_many([groups[i] for i in gone], [places[i] for i in gone])
        return now

    def _write_back(self) -> None:
        working = self._working
        keys, groups, places, found = self._read
        kept = [i for i, key in enumerate(keys) if key in working]
        packed = self.packed([keys[i] for i in kept], [working[keys[i]] for i in kept])
        changed = [(i, value) for i, value in zip(kept, packed, strict=True) if value != found[i]]
        if changed:
            self.backend.put_many([groups[i] for i, _ in changed], [places[i] for i, _ in changed], [value for _, value in changed])
        gone = [i for i, key in enumerate(keys) if found[i] is not None and key not in working] if len(kept) < len(keys) else []
        if gone:
            self.backend.delete_many([groups[i] for i in gone], [places[i] for i in gone])

    def _replacing(self, keys: Sequence[Any], values: Sequence[bytes | None]) -> Iterator[Batch]:
        """Yield the states found, and the keys that are gone, as chunks of a delta."""
        there = [place for place, value in enumerate(values) if value is not None]
        if there:
            batch = self._batch(self.columns_of([keys[i] for i in there]), [values[i] for i in there])
            yield Batch(replacing(batch.rows, self.keys))
        if len(there) < len(keys):
            gone = self.columns_of([key for key, value in zip(keys, values, strict=True) if value is None])
            yield Batch(replacing(pa.RecordBatch.from_arrays(gone, names=list(self.keys)), self.keys))

    def _batch(self, columns: Sequence[pa.Array], packed: Sequence[bytes | None]) -> Batch:
        arrays = [*columns, pa.array(packed, pa.binary())]
        return Batch(pa.RecordBatch.from_arrays(arrays, names=[*self.keys, STATE], metadata={KIND: self._kind}))
