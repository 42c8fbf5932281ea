"""What an operator is: batches in, batches out.

An `Operator` is configuration: it lies in the plan, is sent to workers and never changes. Each worker opens it, which makes an
`OperatorInstance` that one thread uses. It never blocks and knows no clock; event time comes with batches and watermarks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Protocol

from ...state.backends.settings import StateSettings
from ..batch import Batch
from ..keys.load import KeyLoad


class Emit(Protocol):
    """Hands a batch to whoever reads the operator's port."""

    def __call__(self, batch: Batch, port: str = "out") -> None: ...


@dataclass(frozen=True, slots=True)
class Context:
    """Where an operator instance runs: its name, its place among `parallelism` instances, where it notes its load and keeps its state."""

    name: str
    index: int
    parallelism: int
    key_groups: int
    load: KeyLoad
    state: StateSettings = field(default_factory=StateSettings)


class Operator(ABC):
    """One step of a dataflow, as the plan has it."""

    @abstractmethod
    def open(self, context: Context) -> OperatorInstance:
        """Called once in each worker, and again in each attempt: make an instance.

        Raises StateBackendError if there is no place for its state, and whatever a sink raises that can't begin.
        """

    def combined(self) -> tuple[Operator, Operator] | None:
        """For an aggregate that can be pre-combined before the shuffle: the combiner, and the operator to run behind it."""
        return None

    def describe(self) -> str:
        """A few words for `explain()`."""
        return type(self).__name__


class OperatorInstance(ABC):
    """An instance of an operator in a worker. `advance` is called with rising watermarks, `finish` and `close` once."""

    late_records = 0
    """Records that came after their windows were emitted."""

    def __init__(self, context: Context) -> None:
        self.context = context

    @property
    def skipped_records(self) -> int:
        """Records that its user's function has refused, and that did not stop the job."""
        return 0

    @abstractmethod
    def process(self, batch: Batch, emit: Emit) -> None:
        """Take a batch of at least one row. Raises RecordError that names this operator, the key and the record."""

    def advance(self, watermark: int, emit: Emit) -> None:
        """Event time has reached `watermark` (microseconds): no earlier record comes. Called before it is passed on; it only rises."""

    def finish(self, emit: Emit) -> None:
        """The input has ended (after `advance(MAX_TIME)`): emit what is left."""

    def close(self) -> None:
        """Called once at the end, also after an error: let go of files and connections."""
