"""What a sink is to the engine: a writer in each sink worker, and a commit that makes their output visible.

At every checkpoint each writer is asked to `prepare`: it makes what it wrote so far durable and describes it in
committables. When all workers have, the coordinator calls `Sink.commit` once with all of them. A sink whose output becomes visible only
there is exactly-once; one that shows records as they come is at-least-once and says so in `guarantee`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from .batch import Batch


class Sink(ABC):
    """Where records go. Plain picklable configuration: it is sent to every worker that writes it."""

    name: str
    """The default name of the operator that writes it, for example `write_parquet`."""

    guarantee: str = "exactly once (commits with the checkpoint)"
    """What it promises when a job recovers; printed by `explain()`."""

    driver_part: str | None = None
    """What of it is in the process that starts the job as long as the job runs; None if nothing is."""

    def start(self) -> None:
        """Called once on the driver before any worker starts. Raises ConnectorError where it can't be written."""

    def stop(self) -> None:
        """Called once on the driver after the last commit was delivered, or the job failed. Must not raise."""

    @abstractmethod
    def writer(self, index: int, parallelism: int) -> SinkWriter:
        """The writer of worker `index` of `parallelism`."""

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> list[Any]:
        """Called on the coordinator once all writers have prepared `checkpoint`; ids only ever rise.

        Makes the described output visible in one atomic step, and must be idempotent: after a crash it may be called again with
        the same arguments. What it returns (msgpack-able values) is handed to `deliver` on the driver, in order.
        """
        return []

    @property
    def retractable(self) -> bool:
        """Whether `retract` can undo all that it has committed. A sink that commits nothing has nothing to undo."""
        return type(self).commit is Sink.commit

    def retract(self, after: int) -> list[Any]:
        """Undo what was committed with checkpoints behind `after` in this run of the job, which goes on from there: those rows come again.

        Called on the coordinator, if `retractable`, before the commit of `after` is repeated. Must be idempotent. What it returns goes to
        `deliver`, as what `commit` returns does.
        """
        return []

    def sweep(self) -> None:
        """Remove what writers of this run have prepared and nobody will commit: theirs is an attempt that is over.

        Called on the coordinator when everything that counts is committed. What raises here is a warning.
        """

    def take_over(self, job: str, needed: Callable[[], Sequence[Any] | None]) -> None:
        """Say that this run of `job` is at work, and remove what runs of it that were killed have prepared in vain.

        Called on the coordinator, also by one that comes back, when what the job goes on from is committed. `needed()`: the committables of
        checkpoints that a job can still begin from, None if these can't be told. What raises here is a warning.
        """

    def deliver(self, payload: Any) -> None:
        """Called on the driver, in order, for each value that `commit` or `retract` returned; from a `retract` on perhaps once more."""


class SinkWriter(ABC):
    """One worker's writer. Used by one thread."""

    @abstractmethod
    def write(self, batch: Batch) -> None:
        """Take a batch. Raises ConnectorError; the job then stops."""

    @abstractmethod
    def prepare(self, checkpoint: int) -> list[Any]:
        """Make everything written so far durable; returns msgpack-able committables that describe it, maybe none.

        Called at every checkpoint and once at the end of the stream, on an empty writer too.
        """

    def close(self) -> None:
        """Called once when the worker ends, also after an error: let go of handles, sweep what was never prepared."""
