"""The place of an operator's state in a checkpoint, for a process that reads it as a table."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...engine.operators.state_reader import StateReader
from ...engine.protocol.ids import CheckpointNumber
from ...engine.state_description import PartsChange
from .manifest import TaskEntry


@dataclass(frozen=True, slots=True)
class SavedTable:
    """The state of `operator` in the complete checkpoint `checkpoint` of the store at `url`, which was taken at `created` (seconds since
    the epoch).

    `entries`: a part for each worker of then. `reader` makes the table; `change`: the parts of the operator differ from the saved ones.
    """

    operator: str
    url: str = field(repr=False)
    checkpoint: CheckpointNumber
    created: float
    entries: tuple[TaskEntry, ...]
    reader: StateReader
    change: PartsChange | None = None
