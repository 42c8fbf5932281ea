"""The interfaces of operators: batches in, batches out.

An `Operator` is configuration: the plan holds it, workers get a copy, and it never changes. Each worker opens it, which creates
an `OperatorInstance` for one thread. An instance never blocks and has no clock; event time arrives with batches and watermarks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from ..batch import Batch
from ..columns import UNKNOWN, Columns
from ..configured import Configured
from ..context import Context, Emit
from ..dropped_records import DroppedRecord
from ..errors import shown
from ..functions.measures import Measured
from ..functions.running_call import RunningCall
from ..needed import Needed
from ..source import Source
from ..updates import Updates


class Operator(Configured, ABC):
    """One step of a dataflow, as in the plan.

    `ports`: the outputs that must have a reader. `sources`: the sources that each of its instances reads completely when it
    opens.
    """

    ports: tuple[str, ...] = ("out",)
    sources: tuple[Source, ...] = ()

    @abstractmethod
    def open(self, context: Context) -> OperatorInstance:
        """Create an instance. Called once in each worker, and again in each attempt.

        Raises StateBackendError if its state backend can't be opened, and the errors of a sink that can't begin.
        """

    @property
    def has_background_work(self) -> bool:
        """True if its instances have work for other threads (`OperatorInstance.background_work`)."""
        return False

    ticks: ClassVar[bool] = False
    """True if its instances count by the clock (`OperatorInstance.tick`)."""

    stays_with_input: ClassVar[bool] = False
    """True if it always runs in the workers of the operator before it."""

    checked_at_once: ClassVar[bool] = False
    """True if a `problem` is reported when the flow is written, and not only when it is planned."""

    takes_updates: ClassVar[bool] = True
    """True if its results are right when its input is a stream of updates; the author of a user's function must know."""

    def changes(self, inputs: Sequence[Updates | None]) -> Updates | None:
        """Return the updates emitted on `ports`, None for an append-only stream.

        A function may change the key of its input's updates.
        """
        found = [before for before in inputs if before is not None]
        return Updates(None, found[0].origin, deletions=any(before.deletions for before in found)) if found else None

    def weighed(self) -> Operator | None:
        """Return the operator that takes rows with weights and passes them on with their weights; None if it can't.

        It handles each row alone, and in the same way at any time: the row that is taken back must be the row that was added.
        """
        return None

    @property
    def sees_deletions(self) -> bool:
        """True if it takes in which rows of a stream of updates with weights are gone, or passes it on."""
        return self.reads_weights or (self.takes_updates and self.weighed() is not None)

    @property
    def reads_weights(self) -> bool:
        """True if its results are right when its input is a stream of updates with weights."""
        return False

    def combined(self) -> tuple[Operator, Operator] | None:
        """Return the combiner and the operator after the exchange, for an aggregate that can be combined before it."""
        return None

    def needs(self, wanted: Needed | None) -> Needed | None:
        """Return the columns of its input that it needs, given those needed of its output; None stands for all.

        Without any other column of the input, its results and its errors must be the same.
        """
        return None

    def known_columns(self, inputs: Sequence[Columns]) -> Columns:
        """Return the known columns of the rows emitted on `ports`, from those of the inputs.

        Called after `problem`, which found none.
        """
        return UNKNOWN

    def knowing(self, inputs: Sequence[Columns]) -> Operator:
        """Return this operator, or a copy that uses the known columns of its inputs. Called after `problem`, which found none."""
        return self

    def problem(self, inputs: Sequence[Columns]) -> str | None:
        """Describe a problem of inputs with these columns that is certain before the job runs; None without one."""
        return None

    def describe(self) -> str:
        """Return a few words for `explain()`."""
        return type(self).__name__


class OperatorInstance(ABC):
    """An instance of an operator in a worker. `advance` is called with rising watermarks, `finish` and `close` once."""

    late_records = 0
    """The number of records that arrived after their windows were emitted."""

    def __init__(self, context: Context) -> None:
        self.context = context

    @property
    def skipped_records(self) -> int:
        """Return the number of refused records that did not stop the job."""
        return 0

    def measured(self) -> tuple[Measured, ...]:
        """Return the readings of the metrics of a user's function."""
        return ()

    def take_refused(self) -> tuple[DroppedRecord, ...]:
        """Return some of the refused records since the last call."""
        return ()

    def present_call(self) -> RunningCall | None:
        """Return the coroutine for which the present batch waits, None if the operator has no coroutines. May be called by any thread."""
        return None

    @abstractmethod
    def process(self, batch: Batch, emit: Emit) -> None:
        """Process a batch of at least one row. Raises RecordError that names this operator, the key and the record."""

    def advance(self, watermark: int, emit: Emit) -> None:
        """Advance event time to `watermark` (microseconds): no earlier record follows.

        Called before the watermark is passed on; it only rises.
        """

    def finish(self, emit: Emit) -> None:
        """Emit the remaining results. Called at the end of the input, after `advance(MAX_TIME)`."""

    def tick(self, emit: Emit) -> None:
        """Note the time by `Context.now`, and emit what is due by it. Called now and then between two batches, also without input,
        if the operator `ticks`.
        """

    def background_work(self) -> Callable[[], Any] | None:
        """Return work for another thread, if there is any. Called after every event if the operator `has_background_work`.

        `work_ended`, then exactly one of `work_result` and `work_failed`, is called between two batches, unless the task ends first.
        """
        return None

    def work_ended(self) -> None:
        """Note that the background work has ended."""

    def work_result(self, result: Any) -> None:
        """Take the result of the background work."""

    def work_failed(self, error: BaseException) -> str:
        """Return a report about the `error` that the background work raised. The task continues."""
        return shown(error)

    def overdue(self) -> str | None:
        """Return a report, once, about background work that takes too long. Called after every event."""
        return None

    def close(self) -> None:
        """Close files and connections. Called once at the end, also after an error."""
