"""Messages of updates: for each key the newest row, or a tombstone, which is a message without a value.

Workers stage each row as its message, with its weight and its columns. When their checkpoint is complete, the process that commits
adds up the weights, so that one message of each key is left.

>>> upserts = Upserts(Encoding("json", key="k"))
>>> rows = [{"k": "a", "n": 1, WEIGHT: -1}, {"k": "b", "n": 7, WEIGHT: -1}, {"k": "a", "n": 2, WEIGHT: 1}]
>>> staged = upserts.staged(Batch(pa.RecordBatch.from_pylist(rows)))
>>> [batch.to_pylist() for batch in net_messages([staged], "write_kafka")]
[[{'key': b'b', 'value': None}], [{'key': b'a', 'value': b'{"k":"a","n":2}'}]]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import overload

import pyarrow as pa
import pyarrow.compute as pc

from ....engine.batch import Batch
from ....engine.errors import ConnectorError, RecordError
from ....engine.weights import WEIGHT, with_weight, without_weights
from ...staged.net_changes import net_changes
from ..values.encoding import Encoding
from .producing import Chunk

KIND = "weights"
"""The kind of the staged files that hold such messages."""

CHUNK_ROWS, CHUNK_BYTES = 200_000, 32 << 20
"""The approximate most of one transaction: it takes seconds, and `transaction.timeout.ms` is a minute."""

_KEY = "0.key"


@dataclass(frozen=True)
class Upserts:
    """A converter of rows with weights to messages that can be added up."""

    encoding: Encoding

    def staged(self, batch: Batch) -> pa.RecordBatch:
        """Return the message of each row (`0.key`, `1.value`, headers), its weight, and its columns (`row.NAME`).

        Raises RecordError for a row without a key, and for values that can't be encoded.
        """
        rows = batch.rows if WEIGHT in batch.rows.schema.names else with_weight(batch.rows, 1)
        plain = without_weights(rows)
        messages = self.encoding.messages(plain)
        if messages.column(0).null_count:
            lost = pc.index(messages.column(0).is_null(), True).as_py()
            problem = (
                f"column `{self.encoding.keys[0]}`, the message's key, is null, and a message without a key can't replace another; "
                "filter such rows out, or use fill_null"
            )
            raise RecordError(self.encoding.operator, problem, record=Batch(plain.slice(lost, 1)).to_rows()[0])
        names = [*(f"{place}.{name}" for place, name in enumerate(messages.schema.names)), WEIGHT]
        names += [f"row.{name}" for name in plain.schema.names]
        return pa.RecordBatch.from_arrays([*messages.columns, rows[WEIGHT], *plain.columns], names)


def net_messages(staged: Iterable[pa.RecordBatch], operator: str) -> Iterator[pa.RecordBatch]:
    """Yield the messages that are left of the staged ones: a tombstone for each key that is gone, and the present rows.

    The result is the same each time. Raises ConnectorError if two present rows have the same key.
    """
    batches = list(staged)
    if not batches:
        return
    names = batches[0].schema.names[: batches[0].schema.get_field_index(WEIGHT)]
    schema = pa.schema([(name.partition(".")[2], pa.binary()) for name in names])
    for batch in net_changes(batches, (_KEY,), names[1:]):
        if WEIGHT in batch.schema.names:
            nothing = [pa.nulls(batch.num_rows, pa.binary())] * (len(names) - 1)
            yield pa.RecordBatch.from_arrays([batch.column(_KEY), *nothing], schema=schema)
        else:
            _check_keys(batch.column(_KEY), operator)
            yield pa.RecordBatch.from_arrays([batch.column(name) for name in names], schema=schema)


class NetChunks(Sequence[Chunk]):
    """The messages that are left of a checkpoint, in chunks for one transaction each, the same each time.

    `staged` is read when the chunks are needed: the files of a checkpoint that is in the topic may be gone.
    """

    def __init__(self, staged: Chunk, operator: str) -> None:
        self._staged, self._operator = staged, operator

    def __len__(self) -> int:
        return len(self._chunks)

    @overload
    def __getitem__(self, place: int) -> Chunk: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Chunk]: ...

    def __getitem__(self, place: int | slice) -> Chunk | Sequence[Chunk]:
        return self._chunks[place]

    @cached_property
    def _chunks(self) -> list[Chunk]:
        found: list[Chunk] = []
        for batch in net_messages(self._staged(), self._operator):
            rows = max(1, min(CHUNK_ROWS, batch.num_rows * CHUNK_BYTES // max(1, batch.nbytes)))
            found += [partial(iter, [batch.slice(first, rows)]) for first in range(0, batch.num_rows, rows)]
        return found


def _check_keys(keys: pa.Array, operator: str) -> None:
    counts = pc.value_counts(keys)
    most = pc.max(counts.field("counts")).as_py()
    if most is not None and most > 1:
        key = counts.field("values")[pc.index(counts.field("counts"), most).as_py()].as_py()
        raise ConnectorError(
            f"operator `{operator}`: {most} rows have the key {key!r}, and one message of each key can be the newest; let key= name the "
            "columns that tell them apart"
        )
