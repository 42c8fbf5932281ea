r"""The sink of newline-delimited JSON files, which become visible with their checkpoint.

>>> import pathlib, tempfile
>>> import pyarrow as pa
>>> from datetime import datetime
>>> from evenflow.engine.batch import Batch
>>> folder = pathlib.Path(tempfile.mkdtemp())
>>> sink = write_json(folder)
>>> sink.start()
>>> writer = sink.writer(0, 1)
>>> writer.write(Batch(pa.record_batch({"n": [1], "at": [datetime(2026, 1, 31, 10)]})))
>>> _ = sink.commit(1, writer.prepare(1))
>>> [file.read_text() for file in folder.glob("part-*.json")]
['{"n":1,"at":"2026-01-31T10:00:00.000000"}\n']
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from ...engine.time.duration import Duration
from ..files.file_sink import Encoder, FileSink
from ..files.layout import layout_of
from .json_rows import JsonRows, json_refuses


def write_json(
    path: str | Path,
    *,
    partition_by: str | Sequence[str] = (),
    roll_bytes: int | None = None,
    roll_after: Duration | None = None,
    overwrite: bool = False,
    append: bool = False,
    name: str = "write_json",
) -> JsonSink:
    """Write rows as JSON objects, one per line, in the folder `path`, one file per worker and checkpoint, exactly once.

    Times are ISO 8601 strings (a timestamp with a zone in UTC, with "Z"; a duration "PT1.5S"), decimals are strings. JSON has no
    bytes, maps, unions, NaN and infinity: the former three raise ConnectorError, the latter two RecordError. `path`, which may be a
    URL, `partition_by`, `roll_bytes`, `roll_after`, `overwrite` and `append` are as in `write_parquet`; a column may widen its type.
    """
    return JsonSink(path, overwrite, append, name, layout_of(partition_by, roll_bytes, roll_after, name))


class JsonSink(FileSink):
    """The sink that `write_json` creates."""

    extension = ".json"
    may_change = frozenset({"roll_bytes", "roll_after", "overwrite", "append"})
    widens = True

    def check_type(self, kind: pa.DataType) -> str | None:
        return json_refuses(kind)

    def encoder(self, file: BinaryIO, schema: pa.Schema) -> JsonEncoder:
        return JsonEncoder(file, schema, self.name)


class JsonEncoder(Encoder):
    """An encoder of one line per row."""

    def __init__(self, file: BinaryIO, schema: pa.Schema, operator: str) -> None:
        self._file, self._rows = file, JsonRows(schema.names, operator)

    def write(self, rows: pa.RecordBatch) -> None:
        if rows.num_rows:
            self._file.write(("\n".join(self._rows.texts(rows)) + "\n").encode())

    def finish(self) -> None:
        """Do nothing: no rows are buffered."""
