"""The requested savepoints of a job: the checkpoint and the path of each, and its outcome."""

from __future__ import annotations

from dataclasses import replace

from ...engine.protocol.ids import CheckpointNumber
from ..protocol.reports import SavepointReport
from .newest import KEPT


class Savepoints:
    """The savepoints of a job, by the numbers of their checkpoints."""

    def __init__(self) -> None:
        self._reports: dict[int, SavepointReport] = {}

    def add(self, number: int, path: str) -> None:
        """Note that checkpoint `number` is to be copied to `path`."""
        over = [report.number for report in self._reports.values() if report.done]
        for old in over[: max(0, len(over) - KEPT + 1)]:
            del self._reports[old]
        self._reports[number] = SavepointReport(number, path)

    def due(self, checkpoint: CheckpointNumber) -> str | None:
        """Return the path to copy a complete checkpoint to, None if no savepoint was requested."""
        found = self._reports.get(checkpoint)
        return found.path if found is not None and not found.done else None

    def finish(self, checkpoint: CheckpointNumber, problem: str | None) -> None:
        """Note that a savepoint is taken, or failed with `problem`; other checkpoints are ignored."""
        if checkpoint in self._reports:
            self._reports[checkpoint] = replace(self._reports[checkpoint], done=True, problem=problem)

    def reports(self) -> list[SavepointReport]:
        """Return the reports of the newest savepoints, oldest first."""
        return list(self._reports.values())
