"""Facts that a restarted coordinator of a run needs, stored outside the lost process and the checkpoint folder.

If a checkpoint's manifest is deleted, nothing in the folder shows that it existed. So its number is recorded here before the
first sink commits it, and a restarted coordinator knows that rows of a missing checkpoint are visible.

>>> from dataclasses import replace
>>> memory = RunMemory()
>>> memory.keep(replace(memory.record, committed=3))
>>> memory.record.committed
3
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...scheduler.protocol.effects import RememberCode


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Facts that a coordinator leaves to the one that takes over.

    `term`: the term of the newest coordinator (`scheduler/record/restoring/terms.py`). `committed`: the newest checkpoint that sinks may
    have committed. `completed`: the number of complete checkpoints. `running_since`: seconds since the epoch when all workers had started,
    None before that. `stop`: the fields of the order to stop, empty if there was none. `settings`: the fields of the changed settings.
    `code`: the code that has replaced that of the plan.
    """

    term: int = 0
    committed: int = 0
    completed: int = 0
    running_since: float | None = None
    stop: Mapping[str, Any] = field(default_factory=dict)
    code: RememberCode | None = field(default=None, compare=False)
    settings: Mapping[str, Any] = field(default_factory=dict)


class RunMemory:
    """The memory of a run whose coordinator is never restarted: in this process."""

    def __init__(self) -> None:
        self.record = RunRecord()

    def keep(self, record: RunRecord) -> None:
        """Replace the record. If it raises, the record may not have been stored."""
        self.record = record
