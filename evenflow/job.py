"""The handle of a running job, the same for every runtime, and how another process gets one.

A thread follows the job from where it was started: it hands the sinks what they deliver on the driver, and notices when a
source's outside part (a Spark query) fails.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

from .actors.elastic import ScalingReport
from .actors.node_scaling import NodeScalingReport
from .actors.supervisor import JobStatus, Progress
from .balancer.snapshot import LoadSnapshot
from .drawing.changes import decisions_table, migrations_table, node_scalings_text, scalings_table
from .drawing.job import checkpoints_table
from .drawing.metrics import metrics_tables
from .drawing.terminal import Listing
from .engine.errors import ConnectorError, JobFailedError, JobLostError, JobTimeoutError, RequestError
from .engine.sink import Sink
from .engine.source import Source
from .engine.time.duration import Duration, seconds
from .scheduler.checkpoints import CheckpointReport, CheckpointState
from .scheduler.job_effects import JobState
from .scheduler.metrics import HISTORY, OperatorLoad, WorkerFigures
from .scheduler.migration import MigrationReport
from .scheduler.scaling.controller import DecisionRecord, Mode
from .state.errors import EvenflowError

T = TypeVar("T")
POLL = 0.05


class Reported(Protocol):
    """A report of one of many."""

    @property
    def number(self) -> int: ...


R = TypeVar("R", bound=Reported)


class Runtime(Protocol):
    """What a driver offers for one job. `owned`: whether it ends with this process."""

    owned: bool

    def progress(self, seen: int, incarnation: str) -> Progress: ...
    def status(self) -> JobStatus: ...
    def figures(self) -> list[WorkerFigures]: ...
    def load(self, operator: str, windows: int) -> OperatorLoad: ...
    def ask(self, question: str, *arguments: Any) -> Any: ...
    def stop(self) -> None: ...
    def cancel(self) -> None: ...
    def fail(self, error: EvenflowError) -> None: ...
    def close(self) -> None: ...


class Job:
    """A running job. Its methods may be called from any thread."""

    def __init__(self, name: str, runtime: Runtime, sources: Mapping[str, Source], sinks: Mapping[str, Sink]) -> None:
        self.name = name
        self._runtime = runtime
        self._sources, self._sinks = sources, sinks
        self._failure: BaseException | None = None
        self._last: Progress | None = None
        self._ended = threading.Event()  # and not Thread.join: a KeyboardInterrupt in it makes Python 3.11 take the thread for ended
        self._thread = threading.Thread(target=self._follow, name=f"evenflow-follow-{name}", daemon=True)
        self._thread.start()

    def wait(self, timeout: Duration | None = None) -> Job:
        """Wait until the job has ended; returns the job. Raises the job's error if it failed, JobTimeoutError after `timeout`.

        Ctrl-C cancels the job, waits until it is gone, and goes on as a KeyboardInterrupt; a job of another process runs on.
        """
        deadline = None if timeout is None else time.monotonic() + seconds(timeout, "timeout")
        try:
            while not self._ended.wait(0.2):
                if deadline is not None and time.monotonic() > deadline:
                    raise JobTimeoutError(f"job `{self.name}` has not ended within {timeout}; it is {self.status().state.value}")
        except KeyboardInterrupt:
            if self._runtime.owned:
                with suppress(EvenflowError):  # a coordinator that is gone has nothing left to cancel
                    self.cancel()
                self._ended.wait(30)
            raise
        if self._failure is not None:
            raise self._failure
        if self._last is not None and self._last.error is not None:
            raise self._last.error
        return self

    def status(self) -> JobStatus:
        """The job's state, workers, completed checkpoints and running time."""
        return self._runtime.status()

    def metrics(self) -> list[WorkerFigures]:
        """Every worker's figures: totals, rates of the newest window, shares of time, watermark, latency.

        `print` shows them as a table per operator, and so it does what the other questions give: status, load, checkpoints, migrations...
        """
        return Listing(self._runtime.figures(), metrics_tables)

    def load(self, operator: str, *, windows: int = HISTORY) -> OperatorLoad:
        """How the operator's work was shared out over its newest `windows`: load per worker and key group, hottest keys, imbalance.

        `print` shows it as a table. Operators that are chained in one worker share one load. Once the job has ended it is that of the last
        120 windows. Raises RequestError if there is no such operator.
        """
        return self._runtime.load(operator, windows)

    def balancer(self, operator: str, policy: str) -> None:
        """Balance the operator automatically by `policy` from now on (hotspot, lpt, consistent, static), or no longer: `off`.

        The job's settings (`BalanceConfig(threshold=...)`) say when, `JobConfig(migration_strategy=...)` how. `migrations()` tells what
        was done and why. Raises RequestError for an unknown operator or balancer, JobNotRunningError if the job has ended.
        """
        self._runtime.ask("balancer", operator, policy)

    def rebalance(
        self, operator: str, *, policy: str = "hotspot", strategy: str | None = None, timeout: Duration | None = "60s"
    ) -> MigrationReport:
        """Even out the operator's load: plan by a balancer, move by a strategy, and wait until it is done.

        `strategy`: sudden, fluid, batched, pause, lazy or restart; None for the job's (`migration_strategy` in JobConfig). The report tells
        what was planned and why, what moved, how long it took and what the latency was meanwhile. `timeout` None returns at once. Raises
        RequestError for an unknown operator, balancer or strategy, of it JobNotRunningError and JobBusyError (something moves already), and
        JobTimeoutError.
        """
        return self._followed(self._runtime.ask("rebalance", operator, policy, strategy), timeout)

    def migrate(
        self,
        operator: str,
        *,
        groups: Sequence[int] = (),
        keys: Sequence[Hashable] = (),
        to: int,
        strategy: str | None = None,
        timeout: Duration | None = "60s",
    ) -> MigrationReport:
        """Move key groups, or single keys (a tuple for a key of several columns), to the operator's worker `to`; as `rebalance`."""
        return self._followed(self._runtime.ask("migrate", operator, tuple(groups), tuple(keys), to, strategy), timeout)

    def migrations(self) -> list[MigrationReport]:
        """The newest 100 migrations of the job, oldest first."""
        return Listing[MigrationReport](self._runtime.ask("migrations"), migrations_table)

    def snapshot(self, operator: str) -> LoadSnapshot:
        """The operator's load over its newest windows as balancers see it; `to_json` of it is what `evenflow plan balance` reads."""
        snapshot: LoadSnapshot = self._runtime.ask("snapshot", operator)
        return snapshot

    def _followed(self, number: int, timeout: Duration | None) -> MigrationReport:
        deadline = None if timeout is None else time.monotonic() + seconds(timeout, "timeout")
        while True:
            report = _numbered(self.migrations(), number)
            if deadline is None or report.seconds is not None:
                return report
            if time.monotonic() > deadline:
                done = f"{report.steps_done} of {report.steps} steps"
                raise JobTimeoutError(f"migration {number} of `{report.operator}` is not done within {timeout}: {done}")
            time.sleep(POLL)

    def scale(self, operator: str, parallelism: int, *, strategy: str | None = None, timeout: Duration | None = "2m") -> ScalingReport:
        """Give the operator another number of workers while the stream runs, and wait until it is done; None for `timeout` returns at once.

        New workers get the heat that the balancer gives them; the keys of workers that leave move first. `strategy`: how keys move, as in
        `rebalance`. Raises RequestError for an unknown operator, an impossible number or a scaling that failed, of it JobNotRunningError
        and JobBusyError, and JobTimeoutError.
        """
        number = self._runtime.ask("scale", operator, parallelism, strategy)

        def ended() -> ScalingReport | None:
            report = _numbered(self.scalings(), number)
            return report if timeout is None or report.seconds is not None else None

        found = self._awaited(ended, timeout, f"scaling {number} of `{operator}`")
        if found.problem is not None:
            raise RequestError(f"scaling `{operator}` of job `{self.name}` to {parallelism} workers has failed: {found.problem}")
        return found

    def scale_out(self, nodes: int = 1, *, timeout: Duration | None = "5m") -> NodeScalingReport:
        """Use so many nodes more: there the operators whose output counts most get workers, as many as the nodes have slots.

        Raises RequestError if the job can't be scaled now or has no nodes, there are not so many with room, or no operator is congested;
        JobTimeoutError. None for `timeout` returns at once.
        """
        return self._nodes_scaled(self._runtime.ask("scale_out", nodes), timeout)

    def scale_in(self, nodes: int = 1, *, timeout: Duration | None = "5m") -> tuple[NodeScalingReport, ...]:
        """Give so many nodes back, one after the other, those first that the output needs least: every operator loses its workers there.

        At least one worker of each operator stays: if it is on the node it goes on elsewhere from a checkpoint, for which the job needs
        CheckpointConfig(dir=...). Raises RequestError if a node can't be given back, and why, JobTimeoutError. None for `timeout`
        returns once the first has begun.
        """
        rounds = 1 if timeout is None else nodes
        return tuple(self._nodes_scaled(self._runtime.ask("scale_in"), timeout) for _ in range(rounds))

    def node_scalings(self) -> list[NodeScalingReport]:
        """The nodes that came to the job and went by `scale_out` and `scale_in`, the newest 100 orders, oldest first."""
        return Listing[NodeScalingReport](self._runtime.ask("node_scalings"), node_scalings_text)

    def _nodes_scaled(self, number: int, timeout: Duration | None) -> NodeScalingReport:
        def ended() -> NodeScalingReport | None:
            report = _numbered(self.node_scalings(), number)
            return report if timeout is None or report.seconds is not None else None

        found = self._awaited(ended, timeout, f"scaling {number} of the nodes")
        if found.problem is not None:
            raise RequestError(f"scaling the nodes of job `{self.name}` has failed: {found.problem}")
        return found

    def scalings(self) -> list[ScalingReport]:
        """The newest 100 scalings of the job, oldest first."""
        return Listing[ScalingReport](self._runtime.ask("scalings"), scalings_table)

    def autoscaler(self, policy: str, *, mode: Mode = "act") -> None:
        """Give every operator the workers that a scaling policy decides (ds2, dhalion, threshold, ...) from now on, or no longer: `off`.

        `mode` "advise" only records what it would do. The job's settings (`AutoscaleConfig(interval=..., max_parallelism=...)`) say
        how often and how many, and an operator's own bounds (`stream.parallelism(2, between=(1, 4))`, `fixed=True`) go before them. Raises
        RequestError for an unknown policy or mode, or one that the settings don't allow for, JobNotRunningError if the job has ended.
        """
        self._runtime.ask("autoscaler", policy, mode)

    def decisions(self) -> list[DecisionRecord]:
        """What the scaling policies decided, oldest first: what each saw, decided and why, and what became of it."""
        return Listing[DecisionRecord](self._runtime.ask("decisions"), decisions_table)

    def checkpoint(self, timeout: Duration | None = "5m") -> CheckpointReport:
        """Take a checkpoint now and wait until it is complete; None for `timeout` returns at once.

        Raises RequestError if the checkpoint failed, JobNotRunningError, JobTimeoutError.
        """
        number = self._runtime.ask("checkpoint")
        found = self._awaited(lambda: self._checkpoint(number, whole=timeout is None), timeout, f"checkpoint {number}")
        if found.problem is not None:
            raise RequestError(f"checkpoint {number} of job `{self.name}` has failed: {found.problem}")
        return found

    def checkpoints(self) -> list[CheckpointReport]:
        """The job's checkpoints, oldest first: how long each took, how much state it has, why one failed."""
        return Listing[CheckpointReport](self._runtime.ask("checkpoints"), checkpoints_table)

    def savepoint(self, path: str | Path, timeout: Duration = "10m") -> str:
        """Save the whole job, which runs on, into the folder `path` (or URL), to begin another from: `flow.run(from_savepoint=path)`.

        The job needs CheckpointConfig(dir=...). Raises RequestError without it and if `path` is taken or not
        writable, JobNotRunningError, JobTimeoutError.
        """
        url = str(path) if "://" in str(path) else str(Path(path).absolute())
        number = self._runtime.ask("savepoint", url)

        def state() -> tuple[bool, str | None] | None:
            found: tuple[bool, str | None] = self._runtime.ask("savepoint_state", number)
            return found if found[0] else None

        problem = self._awaited(state, timeout, f"the savepoint {url}")[1]
        if problem is not None:
            raise RequestError(f"the savepoint {url} of job `{self.name}` has failed: {problem}")
        return url

    def _checkpoint(self, number: int, *, whole: bool) -> CheckpointReport | None:
        waiting = CheckpointReport(number, CheckpointState.PENDING, None, 0, 0)
        found = next((report for report in self.checkpoints() if report.number == number), waiting)
        return found if whole or found.seconds is not None else None

    def _awaited(self, ask: Callable[[], T | None], timeout: Duration | None, what: str) -> T:
        deadline = None if timeout is None else time.monotonic() + seconds(timeout, "timeout")
        while (found := ask()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise JobTimeoutError(f"{what} of job `{self.name}` is not complete within {timeout}")
            time.sleep(POLL)
        return found

    @property
    def metrics_url(self) -> str | None:
        """Where Prometheus reads the job's metrics; None on the local runtime."""
        return self.status().metrics_url

    def stop(self) -> None:
        """End gracefully: the sources read no more, what they have read is processed and committed. Returns at once."""
        self._runtime.stop()

    def cancel(self) -> None:
        """End at once; what was not yet committed is not. Returns at once."""
        self._runtime.cancel()

    def _follow(self) -> None:
        seen, incarnation = 0, ""
        try:
            while True:
                progress = self._runtime.progress(seen, incarnation)
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
                with suppress(EvenflowError):  # it may be the coordinator itself that is gone
                    self._runtime.fail(JobFailedError(str(self._failure)))
            try:
                self._release()
            finally:
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
                self._runtime.fail(ConnectorError(f"source `{name}`: {problem}"))

    def __repr__(self) -> str:
        return f"<Job {self.name!r} {self.status().state.value}>"


def _numbered(reports: Sequence[R], number: int) -> R:
    """The report of that number. Raises RequestError if so many came after it that it is gone."""
    found = next((report for report in reports if report.number == number), None)
    if found is None:
        raise RequestError(f"number {number} is no longer among the newest {len(reports)} that the job remembers")
    return found


def connect(name: str) -> Job:
    """The job `name` that another process runs on the Ray cluster that this one is connected to, or that RAY_ADDRESS names.

    Its handle shows the job, waits for it, and can stop or cancel it; what sinks deliver goes to the process that started the job, and when
    that ends, so does the job. Raises JobNotRunningError if no job of that name runs, naming those that do.
    """
    from .actors.cluster import find_job

    return Job(name, find_job(name), {}, {})
