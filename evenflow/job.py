"""The handle of a running job, the same for every runtime, and `connect`, which returns one in another process.

In the process that started the job, a thread follows it: it delivers results to the driver's sinks (`Sink.deliver`), and detects failures
of the external part of a source (a Spark query).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from .balancer.snapshot import LoadSnapshot
from .connectors.files.remote import folder_or_url
from .engine.errors import ConnectorError, JobFailedError, JobLostError, JobTimeoutError, RequestError
from .engine.sink import Sink
from .engine.source import Source
from .engine.time.duration import Duration, seconds
from .pictures.svg import Picture
from .process_end import PROCESS_END, StartedJob
from .reads import POLL, find_table, read_key, read_table
from .scheduler.load.metrics import HISTORY, OperatorLoad, WorkerFigures
from .scheduler.protocol.effects import JobState
from .scheduler.protocol.reports import CheckpointReport, CheckpointState, SavepointReport
from .scheduler.protocol.requests import (
    Cancel,
    Fail,
    Responder,
    ShowFigures,
    ShowHistory,
    ShowLoad,
    ShowProgress,
    ShowSnapshot,
    ShowStatus,
    Stop,
    TakeCheckpoint,
    TakeSavepoint,
)
from .scheduler.protocol.status import JobStatus, Progress
from .state.errors import EvenflowError
from .steering import Steering, numbered
from .terminal.listing import Listing
from .upgrades import CodeChanges

if TYPE_CHECKING:
    from .views.polling import JobMonitor


class Runtime(Responder, Protocol):
    """A runtime's connection to one job. `owned`: True if the job ends with this process."""

    owned: bool

    def close(self) -> None: ...


class Job(Steering, CodeChanges):
    """A running job. Its methods may be called from any thread."""

    _runtime: Runtime

    def __init__(
        self,
        name: str,
        runtime: Runtime,
        sources: Mapping[str, Source],
        sinks: Mapping[str, Sink],
        over: Callable[[], None] = lambda: None,
        *,
        started_here: bool = False,
    ) -> None:
        """`over` is called when the job has ended and its resources are released."""
        self.name = name
        self._over = over
        self._runtime = runtime
        self._sources, self._sinks = sources, sinks
        self._failure: BaseException | None = None
        self._last: Progress | None = None
        self._monitor: JobMonitor | None = None
        self._error_seen = False
        self._ended = threading.Event()  # not Thread.join: after a KeyboardInterrupt in it, Python 3.11 believes that the thread has ended
        self._thread = threading.Thread(target=self._follow, name=f"evenflow-follow-{name}", daemon=True)
        self._thread.start()
        if started_here:
            PROCESS_END.add(StartedJob(name, runtime.owned, self._ended.wait, self.stop, self.cancel, self._unseen_error))

    def wait(self, timeout: Duration | None = None) -> Job:
        """Wait until the job has ended; return the job. Raises the job's error if it failed, JobTimeoutError after `timeout`.

        Ctrl-C cancels the job, waits for its end, and raises KeyboardInterrupt; a job that another process started continues.
        """
        deadline = None if timeout is None else time.monotonic() + seconds(timeout, "timeout")
        try:
            while not self._ended.wait(0.2):
                if deadline is not None and time.monotonic() > deadline:
                    raise JobTimeoutError(f"job `{self.name}` has not ended within {timeout}; it is {self.status().state.value}")
        except KeyboardInterrupt:
            if self._runtime.owned:
                with suppress(EvenflowError):  # a lost coordinator has nothing left to cancel
                    self.cancel()
                self._ended.wait(30)
            raise
        PROCESS_END.hold()
        error, self._error_seen = self._error(), True
        if error is not None:
            raise error
        return self

    def _unseen_error(self) -> BaseException | None:
        return self._error() if self._ended.is_set() and not self._error_seen else None

    def _error(self) -> BaseException | None:
        if self._failure is not None:
            return self._failure
        return self._last.error if self._last is not None else None

    def status(self) -> JobStatus:
        """Return the job's state, workers, completed checkpoints and running time."""
        status = self._runtime.ask(ShowStatus())
        self._error_seen = self._error_seen or status.error is not None
        return status

    def metrics(self) -> list[WorkerFigures]:
        """Return every worker's figures: totals, rates of the newest window, shares of time, watermark, latency.

        `print` shows them as a table per operator. It also shows status, load, checkpoints, migrations and so on as tables or text.
        """
        from .terminal.metrics import metrics_tables

        return Listing(self._runtime.ask(ShowFigures()), metrics_tables)

    def load(self, operator: str, *, windows: int = HISTORY) -> OperatorLoad:
        """Return the operator's load over its newest `windows`: per worker and key group, with the hottest keys and the imbalance.

        `print` shows it as text. Operators that are chained in one worker share one load. After the job has ended, this is the load of its
        last 120 windows. Raises RequestError if there is no such operator.
        """
        return self._runtime.ask(ShowLoad(operator, windows))

    def read(self, operator: str, key: Hashable, *, timeout: Duration | None = "30s") -> Any:
        """Return the value of a key in an operator's state (a tuple for a key of several columns), None if it has none.

        That is the present row of an aggregate without windows, as a dict; a dict of the states that a `process` has set; the state of a
        `stateful_map`. The worker that has the key answers between two batches, also while keys move, and nothing stops for it. The value
        can include records after the newest checkpoint: if the job goes back to that, they are processed again, and until then the key has
        an earlier value.

        Raises RequestError for an operator whose keys can't be read and for a key of another type than the operator's,
        JobNotRunningError if the job has ended, JobTimeoutError if no worker has answered within `timeout`: one that is in a long call, or
        waits for the key's state in a move, answers after that.
        """
        return read_key(self._runtime, self.name, operator, key, timeout)

    def table(self, operator: str, *, fresh: bool = False, most: int | None = None, timeout: Duration = "5m") -> pa.Table:
        """Return the state of all keys of an operator as of the newest complete checkpoint: a row for each key, with the key columns in
        front.

        Aggregates without windows have their columns. A `process` has a column for each state, null for a key that doesn't have it. A
        `stateful_map` has the column `state`. A state of the name of a key column is named `state.NAME`. All rows are of one moment of
        the job, that of the checkpoint's barrier. This process reads them from the checkpoint folder, and no worker is asked. The
        metadata of the schema has the number of the `checkpoint`, and when it was `created`.

        `fresh`: take a checkpoint first, and wait for it, `timeout` at most. `most`: read no more than that many keys, in no order.

        Raises RequestError for an operator whose keys can't be read (see `read`), a job without CheckpointConfig(dir=...) and one without
        a complete checkpoint; JobNotRunningError if the job has ended, ConnectorError if a file can't be read, JobTimeoutError.
        """
        if fresh:
            find_table(self._runtime, operator)  # an impossible request takes no checkpoint
            self.checkpoint(timeout)
        return read_table(self._runtime, self.name, operator, most)

    def snapshot(self, operator: str) -> LoadSnapshot:
        """Return the operator's load over its newest windows, as balancers see it. `evenflow plan balance` reads its JSON."""
        return self._runtime.ask(ShowSnapshot(operator))

    def checkpoint(self, timeout: Duration | None = "5m") -> CheckpointReport:
        """Take a checkpoint now and wait until it is complete and committed; None for `timeout` returns at once.

        Raises RequestError if the checkpoint failed, JobNotRunningError, JobTimeoutError.
        """
        number = self._runtime.ask(TakeCheckpoint())
        found = self._awaited(lambda: self._checkpoint(number, whole=timeout is None), timeout, f"checkpoint {number}")
        if found.problem is not None:
            raise RequestError(f"checkpoint {number} of job `{self.name}` has failed: {found.problem}")
        return found

    def checkpoints(self) -> list[CheckpointReport]:
        """Return the newest 100 checkpoints of the job, oldest first: reason, duration, size and problem of each."""
        from .terminal.reports import checkpoints_table

        return Listing[CheckpointReport](self._runtime.ask(ShowHistory(CheckpointReport)), checkpoints_table)

    def savepoint(self, path: str | Path, timeout: Duration = "10m") -> str:
        """Save the whole job into the folder (or URL) `path`; the job continues. `flow.run(from_savepoint=path)` starts another job from
        it.

        The job needs CheckpointConfig(dir=...). Raises RequestError without it and if `path` exists or is not writable,
        JobNotRunningError, JobTimeoutError.
        """
        url = folder_or_url(path, "job.savepoint(...)")
        number = self._runtime.ask(TakeSavepoint(url))

        def done() -> SavepointReport | None:
            found = numbered(self._runtime.ask(ShowHistory(SavepointReport)), number)
            return found if found.done else None

        problem = self._awaited(done, timeout, f"the savepoint {url}").problem
        if problem is not None:
            raise RequestError(f"the savepoint {url} of job `{self.name}` has failed: {problem}")
        return url

    def _checkpoint(self, number: int, *, whole: bool) -> CheckpointReport | None:
        waiting = CheckpointReport(number=number, state=CheckpointState.PENDING, reason="by hand")
        found = next((report for report in self.checkpoints() if report.number == number), waiting)
        return found if whole or found.over else None

    @property
    def metrics_url(self) -> str | None:
        """The address at which Prometheus reads the job's metrics; None on the local runtime."""
        return self.status().metrics_url

    def stop(self, *, drain: bool = False, savepoint: str | Path | None = None, timeout: Duration = "10m") -> None:
        """Stop the job in order, and return at once: sources stop reading, and all records that they have read are processed and
        committed.

        Results that are not due are not emitted: open windows, pending timers, unmatched rows. With CheckpointConfig(dir=...) they stay in
        a last checkpoint, from which another run continues without losing or repeating a row; without it they are discarded. `drain=True`
        ends the stream instead: windows and timers fire, as at the end of a bounded source, and there is nothing to continue.

        `savepoint` is a folder (or URL) to copy the last checkpoint to, for `flow.run(from_savepoint=...)`. `stop` then waits until the job
        has ended, `timeout` at most. Raises JobTimeoutError; RequestError if the folder has files, the job has no
        CheckpointConfig(dir=...), or the copy fails: the job has stopped then, and its own folder has the last checkpoint.
        """
        if savepoint is None:
            self._runtime.ask(Stop(drain))
            return
        if drain:
            raise RequestError("stop(drain=True) ends the stream, so that there is nothing to continue: leave out savepoint= or drain=")
        url = folder_or_url(savepoint, "job.stop(savepoint=...)")
        self._runtime.ask(Stop(savepoint=url))
        if not self._ended.wait(seconds(timeout, "timeout")):
            raise JobTimeoutError(f"job `{self.name}` has not stopped with the savepoint {url} within {timeout}")
        report = next((one for one in reversed(self._runtime.ask(ShowHistory(SavepointReport))) if one.path == url and one.done), None)
        if report is None:
            status = self.status()
            raise RequestError(f"the savepoint {url} was not taken: job `{self.name}` is {status.state} already") from status.error
        if report.problem is not None:
            problem = f"the savepoint {url} of job `{self.name}` has failed: {report.problem}"
            raise RequestError(f"{problem}. The job has stopped, and its own folder has its last checkpoint")

    def cancel(self, *, discard: bool = False) -> None:
        """End the job without processing the rest, and return at once; uncommitted rows are discarded.

        The same program, started again, continues from the newest checkpoint, unless `discard`: then it begins a new run.
        """
        self._runtime.ask(Cancel(discard))

    def plot(self, operator: str | None = None) -> Picture:
        """Draw the last minutes: records per second, latency, the useful time of each worker of `operator`, with a mark at each decision.

        A notebook shows the picture; `.save("job.svg")` writes it. Without `operator` it shows the first with keyed state. After the job
        has ended it has the data of the last call, or of `show`. Raises JobNotRunningError if there was none.
        """
        from .pictures.chart import job_chart

        return job_chart(monitor_of(self).last().whole(), operator)

    def show(self, every: Duration = "1s", timeout: Duration | None = None) -> None:
        """Show the job as `evenflow top` does, in this notebook's cell or on the terminal, until it has ended or `timeout` has passed.

        Interrupt the cell, or press Ctrl-C, to end the display: the job continues.
        """
        from .terminal.live import show

        show(monitor_of(self), seconds(every, "every"), None if timeout is None else seconds(timeout, "timeout"))

    def _repr_html_(self) -> str:
        """Show the state and the workers in a notebook."""
        from rich.console import Group

        from .terminal.console import as_html
        from .terminal.top import headline, workers_table

        return as_html(Group(headline(self.status()), workers_table(self._runtime.ask(ShowFigures()))))

    def _follow(self) -> None:
        seen, incarnation = 0, ""
        try:
            while True:
                progress = self._runtime.ask(ShowProgress(seen, incarnation))
                if progress.incarnation != incarnation:
                    incarnation, seen = progress.incarnation, 0
                self._last = progress
                for name, payload in progress.deliveries:
                    seen += 1
                    if name in self._sinks:
                        self._sinks[name].deliver(payload)
                if progress.state.final and not progress.deliveries:
                    break
                self._check_sources(progress.state)
                time.sleep(POLL)
        except EvenflowError as error:
            self._failure = error
        except BaseException as error:  # noqa: BLE001 -- a thread's error, a sink's sys.exit too, must reach the caller of wait()
            self._failure = JobLostError(f"job `{self.name}` can't be followed: {type(error).__name__}: {error}")
            self._failure.__cause__ = error
        finally:
            if self._failure is not None:
                with suppress(EvenflowError):  # the coordinator itself may be lost
                    self._runtime.ask(Fail(JobFailedError(str(self._failure))))
            try:
                self._release()
            finally:
                self._over()
                self._ended.set()

    def _release(self) -> None:
        for source in self._sources.values():
            source.stop()
        for sink in self._sinks.values():
            sink.stop()
        self._runtime.close()

    def _check_sources(self, state: JobState) -> None:
        if state.final:
            return
        for name, source in self._sources.items():
            problem = source.failure()
            if problem is not None:
                self._runtime.ask(Fail(ConnectorError(f"source `{name}`: {problem}")))

    def __repr__(self) -> str:
        return f"<Job {self.name!r} {self.status().state.value}>"


def monitor_of(job: Job) -> JobMonitor:
    """Return the monitor of a job, which collects its history for pictures whenever it is polled."""
    from .views.polling import JobMonitor

    if job._monitor is None:  # noqa: SLF001 -- one for each job, made when it is needed
        job._monitor = JobMonitor(job.name, job._runtime)  # noqa: SLF001 -- as above
    return job._monitor  # noqa: SLF001 -- as above


def connect(name: str) -> Job:
    """Return a handle of the running job `name`, on the Ray cluster to which this process is connected, or that RAY_ADDRESS names.

    Without either it searches this user's clusters on this machine, chooses the one that runs a job of that name, and names it on stderr.
    Raises ClusterError, which lists them, if none or several do.

    The handle shows and steers the job, waits for it, and can stop or cancel it. Results for the driver (`to_list`) still go to the
    process that started the job, and the job ends with that process unless it is detached. Raises JobNotRunningError, naming the running
    jobs, if none has that name.
    """
    from .actors.cluster import find_job

    return Job(name, find_job(name), {}, {})
