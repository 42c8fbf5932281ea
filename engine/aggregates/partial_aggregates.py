"""Partial aggregates of one operator, as arrays with one row per key.

A `PartialAggregates` holds distinct or repeated keys next to the parts of every aggregate. The combiner sends them through the
exchange as batches, and state keeps them in the same form. The invariant: all partial aggregates of an operator have its
newest binding; when a column's type becomes known or widens, existing partial aggregates are converted at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..batch import Batch
from ..errors import RecordError
from ..keys.encoding import EncodedKeys, encode_keys, joined_keys
from ..state_description import PartsChange
from .base import Accumulator, AggregateFunction, Codes, Parts
from .binding import Binding
from .ragged import joined

ROWS = "__rows"
"""The prefix of the name of the column of row counts; the input's types follow.

So batches of different types are never concatenated.
"""

PANE = "__pane"
PART = re.compile(r"__(\d+)\.(\d+)")
"""The names of the columns of the parts: the index of the aggregate, then that of its part."""

INPUT = b"evenflow.input"
"""The key of the Arrow schema of the aggregated columns in the schema metadata of partial aggregates."""


@dataclass(frozen=True, slots=True)
class PartialAggregates:
    """Rows of partial aggregates.

    `keys`: key columns, shape (n,); `rows`: records behind each row; `parts`: one `Parts` per aggregate, arrays of shape (n,).
    """

    keys: tuple[pa.Array, ...]
    rows: npt.NDArray[np.int64]
    parts: tuple[Parts, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, indices: npt.NDArray[Any]) -> PartialAggregates:
        where = pa.array(indices)
        parts = tuple(tuple(column[indices] for column in part) for part in self.parts)
        return PartialAggregates(tuple(k.take(where) for k in self.keys), self.rows[indices], parts)


Carry: TypeAlias = Callable[[PartialAggregates], PartialAggregates]
"""A conversion of partial aggregates of the previous binding to the new one."""


class PartialAggregator:
    """The aggregates `functions` by name over the key columns `keys`, bound to the types seen so far."""

    def __init__(self, operator: str, keys: tuple[str, ...], functions: Mapping[str, AggregateFunction]) -> None:
        self.operator, self.keys = operator, keys
        self.functions = {name: function.beside(keys) for name, function in functions.items()}
        self.accumulators: tuple[Accumulator, ...] = ()
        self.binding: Binding | None = None
        self._rebound: list[Callable[[Carry], None]] = []
        self._last: pa.Schema | None = None
        self._received: dict[bytes, Binding] = {}

    def when_rebound(self, carry_over: Callable[[Carry], None]) -> None:
        """Register a callback for changes of the binding, which converts the caller's partial aggregates.

        It is called before any result of the new binding.
        """
        self._rebound.append(carry_over)

    def bind(self, schema: pa.Schema) -> Binding:
        """Widen the binding to the types of `schema`. Raises RecordError if no type holds both the earlier values and these."""
        before = self.binding
        if before is not None and schema.equals(self._last):
            return before
        now = Binding(self.operator, self.functions, schema) if before is None else before.holding(schema)
        self._last = schema
        if now is not before:
            self.binding, self.accumulators = now, now.accumulators
            if before is not None:
                for carry_over in self._rebound:
                    carry_over(lambda partial: replace(partial, parts=now.carried(partial.parts, before)))
        return now

    def fixed_width(self, schema: pa.Schema) -> bool:
        """Bind to `schema`, and return True if groups without rows take no more than the width of their parts."""
        self.bind(schema)
        return all(a.fixed_width for a in self.accumulators)

    def aggregate(self, batch: Batch, codes: npt.NDArray[Any], keys: Sequence[pa.Array], groups: int) -> PartialAggregates:
        """Aggregate raw rows by group.

        `codes`: the group of each row, shape (rows,), below `groups`; `keys`: the key columns of each group, shape (groups,).
        """
        self.bind(batch.rows.schema)
        rows = np.bincount(codes, minlength=groups)
        return PartialAggregates(tuple(keys), rows, tuple(a.counted_partial(batch, codes, groups, rows) for a in self.accumulators))

    def combine(self, partials: Sequence[PartialAggregates]) -> PartialAggregates:
        """Merge them into one, with every key once."""
        encoded = self._encoded([partial.keys for partial in partials])
        if len(partials) == 1 and encoded.count == len(partials[0]):
            return partials[0]
        return self.grouped(partials, encoded.columns, encoded.codes, encoded.count)

    def grouped(self, partials: Sequence[PartialAggregates], keys: Sequence[pa.Array], codes: Codes, groups: int) -> PartialAggregates:
        """Merge the rows of all partials that have an equal code; `keys` are the key columns of each group, shape (groups,)."""
        rows = np.zeros(groups, np.int64)
        np.add.at(rows, codes, np.concatenate([s.rows for s in partials]))
        parts = []
        for i, accumulator in enumerate(self.accumulators):
            columns = zip(*(s.parts[i] for s in partials), strict=True)
            parts.append(accumulator.combine(tuple(map(joined, columns)), codes, groups))
        return PartialAggregates(tuple(keys), rows, tuple(parts))

    def distinct_keys(self, pieces: Sequence[Sequence[pa.Array]]) -> list[pa.Array]:
        """Return the distinct keys of pieces of the key columns, as key columns."""
        return list(self._encoded(pieces).columns)

    def of_keys(self, partial: PartialAggregates, keys: Sequence[pa.Array]) -> PartialAggregates:
        """Return the rows whose key is among `keys` (key columns)."""
        encoded = self._encoded([keys, partial.keys])
        wanted = np.zeros(encoded.count, np.bool_)
        wanted[encoded.codes[: len(keys[0])]] = True
        return partial.take(np.flatnonzero(wanted[encoded.codes[len(keys[0]) :]]))

    def results(self, partial: PartialAggregates) -> list[pa.Array]:
        """Return the aggregates' values, one array of shape (n,) per aggregate."""
        return [a.finish(parts) for a, parts in zip(self.accumulators, partial.parts, strict=True)]

    def to_batch(
        self,
        partial: PartialAggregates,
        times: npt.NDArray[np.int64] | None,
        panes: npt.NDArray[np.int64] | None,
        binding: Binding | None = None,
    ) -> Batch:
        """Return the partial aggregates as a batch, with the input's types in the schema's metadata.

        Partial aggregates taken before the binding changed need the `binding` of that time; the default is the newest.
        """
        binding = binding or self.binding
        if binding is None:
            raise ValueError("an aggregator that saw no batch has nothing to send")
        names, columns = list(self.keys), list(partial.keys)
        if panes is not None:
            names.append(PANE)
            columns.append(pa.array(panes))
        names.append(f"{ROWS}{binding.label}")
        columns.append(pa.array(partial.rows))
        for i, (accumulator, parts) in enumerate(zip(binding.accumulators, partial.parts, strict=True)):
            for j, column in enumerate(accumulator.to_arrow(parts)):
                names.append(f"__{i}.{j}")
                columns.append(column)
        schema = pa.schema([(n, c.type) for n, c in zip(names, columns, strict=True)], metadata={INPUT: binding.written})
        return Batch(pa.RecordBatch.from_arrays(columns, schema=schema), times)

    def from_batch(self, batch: Batch) -> tuple[PartialAggregates, npt.NDArray[np.int64] | None]:
        """Return the partial aggregates in the newest binding, and their panes, from a batch of any binding.

        This is the inverse of `to_batch`.
        """
        rows, at = batch.rows, len(self.keys)
        came = self.binding_of(rows.schema.metadata[INPUT])
        now = self.bind(came.input)
        panes = rows.column(at).to_numpy() if rows.schema.names[at] == PANE else None
        at += panes is not None
        counts, at, parts = rows.column(at).to_numpy(), at + 1, []
        for accumulator in came.accumulators:
            width = len(accumulator.part_types)
            parts.append(accumulator.from_arrow(rows.columns[at : at + width]))
            at += width
        carried = tuple(parts) if came.input.equals(now.input) else now.carried(tuple(parts), came)
        return PartialAggregates(tuple(rows.columns[: len(self.keys)]), counts, carried), panes

    def adapted(self, batch: Batch, change: PartsChange) -> Batch:
        """Rearrange a batch by `to_batch` of the aggregates `change.then` for the aggregates of this instance.

        New aggregates start empty. Raises RecordError for state that keeps all columns if a new aggregate reads another column.
        """
        rows, own = batch.rows, [name for name in self.functions if name not in change.now]
        then = [*own, *change.then]
        saved: dict[str, list[pa.Array]] = {name: [] for name in then}
        for name, column in zip(rows.schema.names, rows.columns, strict=True):
            place = PART.fullmatch(name)
            if place is not None and name not in self.keys:
                saved[then[int(place[1])]].append(column)
        came = pa.ipc.read_schema(pa.py_buffer(rows.schema.metadata[INPUT]))
        read = {name for function in self.functions.values() for name in function.reads(pa.schema([]))}
        known = pa.schema([*came, *((name, pa.null()) for name in sorted(read) if name not in came.names)])
        for name, function in self.functions.items():
            if name in saved and function.reads(known) != function.reads(came):
                problem = f"aggregate `{name}` keeps all columns of rows, and a new aggregate reads one that its saved rows don't have"
                raise RecordError(self.operator, f"{problem}: name the operator differently, and say allow_lost_state=True")
        binding = Binding(self.operator, self.functions, known)
        head = [name for name in rows.schema.names if name in self.keys or name == PANE]
        counts = next(name for name in rows.schema.names if name.startswith(ROWS) and name not in self.keys)
        names, columns = [*head, f"{ROWS}{binding.label}"], [*map(rows.column, head), rows.column(counts)]
        for i, (name, accumulator) in enumerate(zip(self.functions, binding.accumulators, strict=True)):
            parts = saved[name] if name in saved else accumulator.to_arrow(accumulator.empty(rows.num_rows))
            names += [f"__{i}.{j}" for j in range(len(parts))]
            columns += parts
        schema = pa.schema([(n, c.type) for n, c in zip(names, columns, strict=True)], metadata={INPUT: binding.written})
        return Batch(pa.RecordBatch.from_arrays(columns, schema=schema), batch.times)

    def nbytes(self, partial: PartialAggregates) -> int:
        """Return an estimate of their bytes."""
        parts = sum(a.nbytes(p) for a, p in zip(self.accumulators, partial.parts, strict=True))
        return int(parts + partial.rows.nbytes + sum(k.nbytes for k in partial.keys))

    def _encoded(self, pieces: Sequence[Sequence[pa.Array]]) -> EncodedKeys:
        keys = [joined_keys([piece[i] for piece in pieces], name, self.operator) for i, name in enumerate(self.keys)]
        return encode_keys(pa.record_batch(keys, names=list(self.keys)), self.keys, self.operator)

    def binding_of(self, written: bytes) -> Binding:
        """Return the binding for the types that another instance wrote."""
        binding = self._received.get(written)
        if binding is None:
            binding = Binding(self.operator, self.functions, pa.ipc.read_schema(pa.py_buffer(written)))
            self._received[written] = binding
        return binding


def is_partial(rows: pa.RecordBatch) -> bool:
    """Return True if these are partial aggregates made by `to_batch`, False for raw rows."""
    metadata = rows.schema.metadata
    return metadata is not None and INPUT in metadata
