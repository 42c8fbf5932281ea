"""The interfaces of operators: batches in, batches out.

An `Operator` is configuration: the plan holds it, workers get a copy, and it never changes. Each worker opens it, which makes an
`OperatorInstance` for one thread. An instance never blocks and has no clock; event time comes with batches and watermarks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from ...state.backends.settings import StateSettings
from ..batch import Batch
from ..keys.load import KeyLoad
from ..source import Source


class Emit(Protocol):
    """Hands a batch to the readers of the operator's port."""

    def __call__(self, batch: Batch, port: str = "out") -> None: ...


@dataclass(frozen=True, slots=True)
class Context:
    """The environment of an operator instance: its name, its index among `parallelism` instances, its load counts, and its state
    settings. `now()`: the time at which the current batch came, in microseconds since the epoch; it never goes back.
    """

    name: str
    index: int
    parallelism: int
    key_groups: int
    load: KeyLoad
    state: StateSettings = field(default_factory=StateSettings)
    now: Callable[[], int] = int


class Operator(ABC):
    """One step of a dataflow, as the plan has it.

    `ports`: those of its outputs that somebody must read. `sources`: those that each of its instances reads whole when it opens.
    """

    ports: tuple[str, ...] = ("out",)
    sources: tuple[Source, ...] = ()

    @abstractmethod
    def open(self, context: Context) -> OperatorInstance:
        """Make an instance. Called once in each worker, and again in each attempt.

        Raises StateBackendError if its state backend can't be opened, and the errors of a sink that can't begin.
        """

    stays_with_input: ClassVar[bool] = False
    """Whether it always runs in the workers of the operator before it."""

    def combined(self) -> tuple[Operator, Operator] | None:
        """For an aggregate that can be combined before the exchange: the combiner, and the operator to run after the exchange."""
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
        """Refused records that did not stop the job."""
        return 0

    @abstractmethod
    def process(self, batch: Batch, emit: Emit) -> None:
        """Take a batch of at least one row. Raises RecordError that names this operator, the key and the record."""

    def advance(self, watermark: int, emit: Emit) -> None:
        """Event time has reached `watermark` (microseconds): no earlier record comes. Called before the watermark is passed on; it only
        rises.
        """

    def finish(self, emit: Emit) -> None:
        """The input has ended (after `advance(MAX_TIME)`): emit the remaining results."""

    def close(self) -> None:
        """Called once at the end, also after an error: close files and connections."""
