"""The writer of sinks that stage their rows until their checkpoint is complete."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from ...engine.batch import Batch
from ...engine.errors import ConnectorError
from ...engine.sink import SinkWriter
from .staging import StagedFile, Staging, StagingPlace


class StagingWriter(SinkWriter):
    """A writer of files of about `most_rows` rows and `most_bytes` bytes, which it seals at each checkpoint.

    `form` converts a batch to the rows to stage. The names of a writer's files are in the order of its rows, and contain `kind`.
    """

    def __init__(
        self, form: Callable[[Batch], pa.RecordBatch], place: StagingPlace, operator: str, most_rows: int, most_bytes: int, kind: str = ""
    ) -> None:
        self._form, self._place, self._operator = form, place, operator
        self._staging = Staging(place.staging)
        self._most_rows, self._most_bytes = most_rows, most_bytes
        self._stem, self._count = f"{place.run}-{kind and kind + '-'}{uuid.uuid4().hex[:12]}", 0
        self._held: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0
        self._files: list[StagedFile] = []

    def write(self, batch: Batch) -> None:
        if batch.num_rows:
            for piece in self._pieces(self._form(batch)):
                self._held.append(piece)
                self._rows, self._bytes = self._rows + piece.num_rows, self._bytes + piece.nbytes
                if self._rows >= self._most_rows or self._bytes >= self._most_bytes:
                    self._write_file()

    def prepare(self, checkpoint: int) -> list[Any]:
        self._write_file()
        files, self._files = self._files, []
        with self._explained():
            self._staging.seal(files)
        return [{**self._place._asdict(), "files": [file.entry() for file in files]}] if files else []

    def close(self) -> None:
        self._staging.abandon(file.name for file in self._files)
        self._files, self._held = [], []

    def _pieces(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Split `rows` into pieces that fit into a file."""
        parts = max(rows.num_rows / self._most_rows, rows.nbytes / self._most_bytes, 1)
        most = max(1, int(rows.num_rows / parts))
        return (rows.slice(first, most) for first in range(0, rows.num_rows, most))

    def _write_file(self) -> None:
        if self._held:
            with self._explained():
                self._files.append(self._staging.write(f"{self._stem}-{self._count:08d}", self._held))
            self._held, self._rows, self._bytes = [], 0, 0
            self._count += 1

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise ConnectorError(f"operator `{self._operator}`: can't write into {self._staging.url}: {error}") from error
