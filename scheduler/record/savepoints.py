"""The savepoints that a job was asked for: which checkpoint each is made of, where it goes, and what has become of it."""

from __future__ import annotations

from dataclasses import replace

from ...engine.errors import RequestError
from ...engine.protocol.ids import CheckpointNumber
from ..protocol.reports import SavepointReport
from .newest import KEPT


class Savepoints:
    """By the numbers of their checkpoints."""

    def __init__(self) -> None:
        self._asked: dict[int, SavepointReport] = {}

    def ask(self, number: int, path: str) -> None:
        """Checkpoint `number` is to be copied to `path`."""
        over = [report.number for report in self._asked.values() if report.done]
        for old in over[: max(0, len(over) - KEPT + 1)]:
            del self._asked[old]
        self._asked[number] = SavepointReport(number, path)

    def due(self, checkpoint: CheckpointNumber) -> str | None:
        """Where the checkpoint, which is complete, is to be copied to; None if nowhere."""
        found = self._asked.get(checkpoint)
        return found.path if found is not None and not found.done else None

    def ended(self, checkpoint: CheckpointNumber, problem: str | None) -> None:
        """A savepoint is taken, or will never be; other checkpoints are left as they are."""
        if checkpoint in self._asked:
            self._asked[checkpoint] = replace(self._asked[checkpoint], done=True, problem=problem)

    def report(self, number: int) -> SavepointReport:
        """Raises RequestError if newer savepoints have displaced it."""
        if number not in self._asked:
            raise RequestError(f"savepoint {number} is no longer among those that the job remembers")
        return self._asked[number]
