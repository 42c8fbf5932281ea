r"""The sink of CSV files with a header line, which become visible with their checkpoint.

>>> import pathlib, tempfile
>>> import pyarrow as pa
>>> from evenflow.engine.batch import Batch
>>> folder = pathlib.Path(tempfile.mkdtemp())
>>> sink = write_csv(folder)
>>> sink.start()
>>> writer = sink.writer(0, 1)
>>> writer.write(Batch(pa.record_batch({"word": ["a", None], "n": [1, 2]})))
>>> _ = sink.commit(1, writer.prepare(1))
>>> [file.read_text() for file in folder.glob("part-*.csv")]
['"word","n"\n"a",1\n,2\n']
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.csv as arrow_csv

from ...engine.time.duration import Duration
from ..files.file_sink import Encoder, FileSink
from ..files.layout import Layout, layout_of


def write_csv(
    path: str | Path,
    *,
    delimiter: str = ",",
    partition_by: str | Sequence[str] = (),
    roll_bytes: int | None = None,
    roll_after: Duration | None = None,
    overwrite: bool = False,
    append: bool = False,
    name: str = "write_csv",
) -> CsvSink:
    """Write rows as CSV files in the folder `path`, one file per worker and checkpoint, exactly once.

    Strings are quoted, null is empty, timestamps are "2026-01-31 10:00:00.000000", with a final "Z" if they have a zone. Lists,
    structs, maps and bytes raise ConnectorError. `path`, which may be a URL, `partition_by`, `roll_bytes`, `roll_after`, `overwrite`
    and `append` are as in `write_parquet`; a column may widen its type.
    """
    return CsvSink(path, delimiter, overwrite, append, name, layout_of(partition_by, roll_bytes, roll_after, name))


class CsvSink(FileSink):
    """The sink that `write_csv` creates."""

    extension = ".csv"
    may_change = frozenset({"roll_bytes", "roll_after", "overwrite", "append"})
    widens = True

    def __init__(self, path: str | Path, delimiter: str, overwrite: bool, append: bool, name: str, layout: Layout) -> None:
        super().__init__(path, overwrite, append, name, layout)
        self._delimiter = delimiter

    def check_type(self, kind: pa.DataType) -> str | None:
        value = kind.value_type if pa.types.is_dictionary(kind) else kind
        if pa.types.is_nested(value):
            return "CSV has no nested values; write JSON or Parquet, or map it to a string"
        if pa.types.is_binary(value) or pa.types.is_large_binary(value) or pa.types.is_fixed_size_binary(value):
            return "CSV has no bytes; write Parquet, or map it to a string (base64, hex)"
        if pa.types.is_interval(value):
            return "CSV has no intervals; map it to a string"
        return None

    def encoder(self, file: BinaryIO, schema: pa.Schema) -> CsvEncoder:
        return CsvEncoder(arrow_csv.CSVWriter(file, schema, write_options=arrow_csv.WriteOptions(delimiter=self._delimiter)))


class CsvEncoder(Encoder):
    """An encoder that wraps Arrow's CSV writer."""

    def __init__(self, writer: arrow_csv.CSVWriter) -> None:
        self._writer = writer

    def write(self, rows: pa.RecordBatch) -> None:
        self._writer.write_batch(rows)

    def finish(self) -> None:
        self._writer.close()
