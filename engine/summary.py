"""Summaries: the aggregates of one operator, kept together as arrays with one row per key.

A `Summary` holds distinct or repeated keys beside the parts of every aggregate. Summaries travel as batches (what the combiner
sends across the shuffle) and lie in state as they are: there is one form from the first batch to the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .aggregates.base import Accumulator, AggregateFunction, Parts
from .batch import Batch
from .errors import RecordError
from .keys import encode_keys

ROWS = "__rows"
PANE = "__pane"
INPUT = b"evenflow.input"
"""Schema metadata of a summary: the Arrow schema of the columns that were summarised."""


@dataclass(frozen=True, slots=True)
class Summary:
    """`keys`: key columns, shape (n,); `rows`: records behind each row; `parts`: one `Parts` per aggregate, arrays of shape (n,)."""

    keys: tuple[pa.Array, ...]
    rows: npt.NDArray[np.int64]
    parts: tuple[Parts, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, indices: npt.NDArray[Any]) -> Summary:
        where = pa.array(indices)
        parts = tuple(tuple(column[indices] for column in part) for part in self.parts)
        return Summary(tuple(k.take(where) for k in self.keys), self.rows[indices], parts)


class Summariser:
    """The aggregates `functions` by name over the key columns `keys`, bound to the types of the first batch."""

    def __init__(self, operator: str, keys: tuple[str, ...], functions: dict[str, AggregateFunction]) -> None:
        self.operator, self.keys, self.functions = operator, keys, functions
        self.columns = tuple(sorted({f.column for f in functions.values() if f.column is not None}))
        self.accumulators: tuple[Accumulator, ...] = ()
        self.input: pa.Schema | None = None

    def bind(self, schema: pa.Schema) -> None:
        """Learn the input types; a later batch with other types, but for a column of nulls, is a RecordError."""
        if self.input is not None and self.input.equals(schema):
            return
        if self.input is not None:
            for name in self.columns:
                before, now = self.input.field(name).type, schema.field(name).type if name in schema.names else None
                if before != now and not (now is not None and pa.types.is_null(now)):
                    raise RecordError(self.operator, f"column `{name}` was {before} and is now {now or 'missing'}: its type must stay")
            return
        self.accumulators = tuple(f.bind(schema, self.operator) for f in self.functions.values())
        self.input = schema

    def summarise(self, batch: Batch, codes: npt.NDArray[Any], keys: Sequence[pa.Array], groups: int) -> Summary:
        """Raw rows by group: `codes` (rows,) below `groups`; `keys` the key columns of each group, shape (groups,)."""
        self.bind(batch.rows.schema)
        rows = np.bincount(codes, minlength=groups)
        return Summary(tuple(keys), rows, tuple(a.partial(batch, codes, groups) for a in self.accumulators))

    def combine(self, summaries: Sequence[Summary]) -> Summary:
        """One summary with every key once."""
        keys = [_joined([s.keys[i] for s in summaries], name, self.operator) for i, name in enumerate(self.keys)]
        encoded = encode_keys(pa.record_batch(keys, names=list(self.keys)), self.keys, self.operator)
        if len(summaries) == 1 and encoded.count == len(summaries[0]):
            return summaries[0]
        codes, groups = encoded.codes, encoded.count
        rows = np.zeros(groups, np.int64)
        np.add.at(rows, codes, np.concatenate([s.rows for s in summaries]))
        parts = []
        for i, accumulator in enumerate(self.accumulators):
            columns = zip(*(s.parts[i] for s in summaries), strict=True)
            parts.append(accumulator.combine(tuple(np.concatenate(column) for column in columns), codes, groups))
        return Summary(tuple(encoded.columns), rows, tuple(parts))

    def results(self, summary: Summary) -> list[pa.Array]:
        """The aggregates' values, one array of shape (n,) per aggregate."""
        return [a.finish(parts) for a, parts in zip(self.accumulators, summary.parts, strict=True)]

    def to_batch(self, summary: Summary, times: npt.NDArray[np.int64] | None, panes: npt.NDArray[np.int64] | None) -> Batch:
        """The summary as a batch, for the wire; the input's types travel in the schema's metadata."""
        names, columns = list(self.keys), list(summary.keys)
        if panes is not None:
            names.append(PANE)
            columns.append(pa.array(panes))
        names.append(ROWS)
        columns.append(pa.array(summary.rows))
        for i, (accumulator, parts) in enumerate(zip(self.accumulators, summary.parts, strict=True)):
            for j, column in enumerate(accumulator.to_arrow(parts)):
                names.append(f"__{i}.{j}")
                columns.append(column)
        if self.input is None:
            raise ValueError("a summariser that saw no batch has nothing to send")
        fields = [self.input.field(name) for name in self.columns]
        metadata = {INPUT: pa.schema(fields).serialize().to_pybytes()}
        schema = pa.schema([(n, c.type) for n, c in zip(names, columns, strict=True)], metadata=metadata)
        return Batch(pa.RecordBatch.from_arrays(columns, schema=schema), times)

    def from_batch(self, batch: Batch) -> tuple[Summary, npt.NDArray[np.int64] | None]:
        """What `to_batch` made: the summary and its panes."""
        rows = batch.rows
        if self.input is None:
            self.bind(pa.ipc.read_schema(pa.py_buffer(rows.schema.metadata[INPUT])))
        names = rows.schema.names
        panes = rows.column(PANE).to_numpy() if PANE in names else None
        at, parts = names.index(ROWS) + 1, []
        for accumulator in self.accumulators:
            width = len(accumulator.part_types)
            parts.append(accumulator.from_arrow(rows.columns[at : at + width]))
            at += width
        return Summary(tuple(rows.columns[: len(self.keys)]), rows.column(ROWS).to_numpy(), tuple(parts)), panes

    def nbytes(self, summary: Summary) -> int:
        """Estimate of the bytes that the summary takes."""
        parts = sum(a.nbytes(p) for a, p in zip(self.accumulators, summary.parts, strict=True))
        return int(parts + summary.rows.nbytes + sum(k.nbytes for k in summary.keys))


def _joined(columns: Sequence[pa.Array], name: str, operator: str) -> pa.Array:
    """Pieces of the key column `name` as one; a piece that holds only nulls takes the others' type."""
    types = {column.type for column in columns}
    if len(types) == 1:
        return pa.concat_arrays(columns)
    known = [kind for kind in types if not pa.types.is_null(kind)]
    if len(known) > 1:
        found = " and ".join(sorted(map(str, known)))
        raise RecordError(operator, f"the key column `{name}` is of the types {found} in turn: give it one type, for example by schema=")
    return pa.concat_arrays([column.cast(known[0]) for column in columns])
