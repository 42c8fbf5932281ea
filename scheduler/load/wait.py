"""A cause for which a job, or its results, stand still."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ...engine.protocol.ids import WorkerId


class WaitKind(StrEnum):
    """The kinds of causes."""

    FUNCTION = "function"
    WORKER = "worker"
    MOVE = "move"
    CHECKPOINT = "checkpoint"
    COMMIT = "commit"
    CREDIT = "credit"
    WATERMARK = "watermark"
    INPUT = "input"
    NODE = "node"


NO_WORKER = WorkerId("")


@dataclass(frozen=True, slots=True)
class Wait:
    """A cause. `text`: a sentence about it; `seconds`: how long it has lasted.

    `operator`, `worker`: where the cause is, empty if it is in no operator or in no single worker. `split`: the split of the
    source. `stack`: of a function that has not returned, the frames from the outermost on.
    """

    kind: WaitKind
    text: str
    seconds: float
    operator: str = ""
    worker: WorkerId = NO_WORKER
    split: str = ""
    stack: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join((self.text, *(f"    {frame}" for frame in self.stack)))
