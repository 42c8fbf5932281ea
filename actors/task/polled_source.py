"""The source of a source task: its reader, which is paused, replaced and closed while the job is rescaled.

Invariant: there is at most one open reader, and a task of a worker that joined a running source has none before it gets its splits.
"""

from __future__ import annotations

from typing import Any

from ...engine.errors import ProtocolError
from ...engine.operators.rows.read import Read
from ...engine.plan.task_spec import TaskSpec
from ...engine.source import Source, SourceReader


class PolledSource:
    """The source of a task. `reader` is None for a task that reads no source."""

    def __init__(self, spec: TaskSpec) -> None:
        self._spec = spec
        self.reader: SourceReader | None = None
        self.paused = False

    def open(self) -> None:
        """Open the reader if the task has a source. Raises any error of a source that can't be read."""
        head, spec = self._spec.chain[0].operator, self._spec
        if isinstance(head, Read) and not spec.joining:
            self.reader = head.source.reader(spec.index, spec.parallelism)

    def seek(self, position: Any) -> None:
        """Continue from `position`; None: from the beginning."""
        if self.reader is not None and position is not None:
            self.reader.seek(position)

    @property
    def position(self) -> Any:
        """The reader's position, None without a reader."""
        return self.reader.position() if self.reader is not None else None

    def take(self, index: int, parallelism: int, position: Any) -> int:
        """Continue from `position` as reader `index` of `parallelism`; return the earliest event time of the remaining rows, in
        microseconds.

        Raises ProtocolError if the task reads no source.
        """
        source = self._source()
        self.close()
        self.reader = source.reader(index, parallelism)
        self.reader.seek(position)
        return source.earliest(position)

    def close(self) -> None:
        """Close the reader, if there is one."""
        if self.reader is not None:
            self.reader.close()
            self.reader = None

    def _source(self) -> Source:
        head = self._spec.chain[0].operator
        if not isinstance(head, Read):
            raise ProtocolError(f"task {self._spec.name} reads no source")
        return head.source
