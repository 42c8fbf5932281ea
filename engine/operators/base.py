"""The interfaces of operators: batches in, batches out.

An `Operator` is configuration: the plan holds it, workers get a copy, and it never changes. Each worker opens it, which makes an
`OperatorInstance` for one thread. An instance never blocks and has no clock; event time comes with batches and watermarks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from ..batch import Batch
from ..columns import UNKNOWN, Columns
from ..context import Context, Emit
from ..errors import shown
from ..left_out import LeftOut
from ..needed import Needed
from ..source import Source
from ..updates import Updates


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

    @property
    def works_outside(self) -> bool:
        """Whether its instances have work that is done outside of their worker's thread (`OperatorInstance.wanted`)."""
        return False

    stays_with_input: ClassVar[bool] = False
    """Whether it always runs in the workers of the operator before it."""

    checked_at_once: ClassVar[bool] = False
    """True if the user hears of a `problem` when the flow is written, and not only when it is planned."""

    takes_updates: ClassVar[bool] = True
    """True if its results are right when its input is a stream of updates; a user's function answers for itself."""

    def changes(self, inputs: Sequence[Updates | None]) -> Updates | None:
        """The updates that leave by `ports`, None for an append-only stream. A function may change the key of its input's updates."""
        return next((Updates(None, before.origin) for before in inputs if before is not None), None)

    def combined(self) -> tuple[Operator, Operator] | None:
        """For an aggregate that can be combined before the exchange: the combiner, and the operator to run after the exchange."""
        return None

    def needs(self, wanted: Needed | None) -> Needed | None:
        """The columns of its input that it needs if those in `wanted` are needed of its output; None stands for all.

        Without any other column of the input, its results and its errors must be the same.
        """
        return None

    def known_columns(self, inputs: Sequence[Columns]) -> Columns:
        """What is known of the rows that leave by `ports`, from what is known of the inputs. Called after `problem`, which found none."""
        return UNKNOWN

    def knowing(self, inputs: Sequence[Columns]) -> Operator:
        """This operator, or a copy that makes use of what is known of its inputs' columns. Called after `problem`, which found none."""
        return self

    def problem(self, inputs: Sequence[Columns]) -> str | None:
        """Why inputs of these columns can't be, as far as that is certain before the job runs."""
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

    def take_refused(self) -> tuple[LeftOut, ...]:
        """Some of the refused records since it was asked last."""
        return ()

    @abstractmethod
    def process(self, batch: Batch, emit: Emit) -> None:
        """Take a batch of at least one row. Raises RecordError that names this operator, the key and the record."""

    def advance(self, watermark: int, emit: Emit) -> None:
        """Event time has reached `watermark` (microseconds): no earlier record comes. Called before the watermark is passed on; it only
        rises.
        """

    def finish(self, emit: Emit) -> None:
        """The input has ended (after `advance(MAX_TIME)`): emit the remaining results."""

    def wanted(self) -> Callable[[], Any] | None:
        """Asked after every event if the operator `works_outside`: work to be done outside of the worker's thread from now on.

        Exactly one of `brought` and `failed` follows, between two batches, and `returned` before it, unless the task ends first.
        """
        return None

    def returned(self) -> None:
        """The work that was wanted is over."""

    def brought(self, result: Any) -> None:
        """The result of the work that was wanted."""

    def failed(self, error: BaseException) -> str:
        """The work that was wanted raised `error`: what to report of it. The task goes on."""
        return shown(error)

    def overdue(self) -> str | None:
        """Asked after every event if the operator `works_outside`: what to report of work that takes too long; each time once."""
        return None

    def close(self) -> None:
        """Called once at the end, also after an error: close files and connections."""
