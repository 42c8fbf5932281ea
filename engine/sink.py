"""The interface of sinks: a writer in each sink worker, and a commit that makes their output visible.

At every checkpoint each writer must `prepare`: it makes its output so far durable and describes it in committables. When all
workers have prepared, the coordinator calls `Sink.commit` once with all committables. A sink whose output becomes visible only
then is exactly-once. One that shows records on arrival is at-least-once, and says so in `guarantee`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from .batch import Batch
from .columns import Columns
from .configured import Configured
from .updates import Updates


class Sink(Configured, ABC):
    """The description of a sink. Plain picklable configuration: it is sent to every worker that writes it."""

    name: str
    """The default name of the operator that writes it, for example `write_parquet`."""

    guarantee: str = "exactly once (commits with the checkpoint)"
    """Its guarantee when a job recovers; `explain()` prints it."""

    reads_weights: bool = False
    """True if it takes updates as rows with weights (`weights.py`), where they can be had: rows that are gone are told too."""

    driver_part: str | None = None
    """The part of it that runs in the process that starts the job, as long as the job runs; None if there is none."""

    may_change: frozenset[str] = frozenset()
    """The settings (`given_settings`, without underscores at the ends) that may differ from those of the sink that it `continues`.

    Only those of its writers: the job goes on committing with the older sink.
    """

    def continues(self, other: Sink) -> str | None:
        """Describe why the writers of this sink can't take the place of those of `other`, which runs now; None if they can.

        Called for a live upgrade, before this sink is started: both are of one class, and differ in settings that `may_change`.
        """
        return None

    def continuing(self, other: Sink) -> Sink:
        """Return a sink with the settings of this one for the run of `other`, which was started: `start` isn't called.

        `other` commits, retracts and removes all that its writers prepare. Called if `continues` found no problem.
        """
        return self

    def of_job(self, job: str, operator: str, checkpoints: str | None) -> None:
        """Take the names of the job and of the operator that writes. Called on the driver before `start`.

        `checkpoints`: the location of the job's checkpoints, a path or URL of this job's own, which all workers and the
        committing process reach; None if it doesn't save its state.
        """

    def of_run(self, run: str, *, continues: bool) -> None:
        """Take the id of the job's run. Called on the driver after `of_job`, before `start`.

        If it `continues` a run that an earlier process began, the output of that run is this sink's own: `start` must not refuse
        it or remove it, and `retract` undoes it too. Both name checkpoints by numbers that rise over the whole run.
        """

    def problem(self, columns: Columns) -> str | None:
        """Describe why a stream with these known columns can't be written, None if it can. Called before `start`."""
        return None

    def problem_of(self, updates: Updates | None) -> str | None:
        """Describe why these updates, or append-only rows, can't be written, None if they can. Called when the flow is written."""
        return None

    def start(self) -> None:
        """Prepare the sink.

        Called once on the driver before any worker starts. Raises ConnectorError if the sink can't be written.
        """

    def stop(self) -> None:
        """End the sink. Called once on the driver after the last commit was delivered, or the job failed. Must not raise."""

    @abstractmethod
    def writer(self, index: int, parallelism: int) -> SinkWriter:
        """Return the writer of worker `index` of `parallelism`."""

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> list[Any]:
        """Make the described output visible in one atomic step.

        Called on the coordinator once all writers have prepared `checkpoint`. Ids only rise. Must be idempotent: after a crash it
        may be called again with the same arguments. It returns msgpack-able values, which `deliver` gets on the driver, in order.
        """
        return []

    @property
    def retractable(self) -> bool:
        """True if `retract` can undo all that it has committed. A sink that commits nothing has nothing to undo."""
        return type(self).commit is Sink.commit

    def retract(self, after: int) -> list[Any]:
        """Undo the commits of checkpoints later than `after` in this run.

        The job continues from `after`, so those rows arrive again. Called on the coordinator, if `retractable`, before the commit
        of `after` is repeated. Must be idempotent. Its results go to `deliver`, like those of `commit`.
        """
        return []

    def sweep(self) -> None:
        """Remove output that writers of old attempts of this run have prepared: it will never be committed.

        Called on the coordinator when everything that counts is committed. An error here becomes a warning.
        """

    def take_over(self, job: str, needed: Callable[[], Sequence[Any] | None]) -> None:
        """Claim the sink for this run of `job`, and remove prepared output of its killed runs that will never be committed.

        Called on the coordinator, also by a restarted one, when the job's restore point is committed. `needed()`: the
        committables of checkpoints from which a job can still begin, None if they are not known. An error here becomes a warning.
        """

    def deliver(self, payload: Any) -> None:
        """Take a value that `commit` or `retract` returned. Called on the driver, in order.

        Values from a `retract` on may be repeated.
        """


class SinkWriter(ABC):
    """One worker's writer. Used by one thread."""

    @abstractmethod
    def write(self, batch: Batch) -> None:
        """Take a batch. Raises ConnectorError; the job then stops."""

    @abstractmethod
    def prepare(self, checkpoint: int) -> list[Any]:
        """Make everything written so far durable. Return msgpack-able committables that describe it, possibly none.

        Called at every checkpoint and once at the end of the stream, on an empty writer too.
        """

    def close(self) -> None:
        """Close handles, and remove output that was never prepared. Called once when the worker ends, also after an error."""
