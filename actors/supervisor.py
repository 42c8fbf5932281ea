"""The supervisor: carries out what the job's state machine decides, for either driver.

It owns the job's state, its metrics, and the sinks' commits. `tell(worker, command)` is how the driver reaches a worker.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, NoReturn

from ..balancer.plan import BalancePlan
from ..balancer.policies import named
from ..balancer.snapshot import LoadSnapshot
from ..balancer.strategies import plan_steps
from ..engine.errors import JobFailedError, RequestError
from ..engine.operators.read import Read
from ..engine.operators.write import Write
from ..engine.plan.physical import Plan, Stage
from ..engine.protocol.handover_step import HandoverStep
from ..engine.protocol.routing import RoutingTable
from ..engine.sink import Sink
from ..engine.source import Source
from ..scheduler.balancing import Balancing, check_balancer
from ..scheduler.checkpoints import CheckpointReport
from ..scheduler.config import JobConfig
from ..scheduler.configs.balance import OFF
from ..scheduler.job import JobCore
from ..scheduler.job_effects import Commit, Discard, Effect, JobState, Redeploy, Retire, Save, Spawn, Tell
from ..scheduler.load_snapshot import groups_per_step, hash_of, load_snapshot
from ..scheduler.manifest import Manifest
from ..scheduler.messages import Command, Failed, Report
from ..scheduler.metrics import HISTORY, JobMetrics, OperatorLoad, WorkerFigures
from ..scheduler.migration import Migration, MigrationReport
from ..scheduler.placement import Place
from ..scheduler.restore import fitting_tables, plan_at
from ..scheduler.scaling.controller import DecisionRecord, Mode
from ..scheduler.terms import first_attempt
from ..scheduler.window import WorkerWindow
from ..state.errors import CorruptCheckpointError, EvenflowError
from .autoscaling import Autoscaling
from .beginning import Beginning, Savepoint
from .cluster_view import Cluster
from .elastic import Elasticity, ScalingReport
from .node_scaling import NodeScaling, NodeScalingReport
from .run_memory import RunMemory
from .saved_state import SavedState, SupersededError, stop_here
from .taking_back import take_back

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class JobStatus:
    """What `job.status()` shows; `running_seconds` from when all workers had started (0.0 before) to the end.

    `attempt` rises whenever the job goes back to its last checkpoint. `places`: each worker's process and node,
    `spares`: the warm spares that have started; a local job has neither.
    """

    name: str
    state: JobState
    error: EvenflowError | None
    workers: tuple[str, ...]
    completed_checkpoints: int
    running_seconds: float
    metrics_url: str | None = None
    attempt: int = 0
    places: Mapping[str, Place] = field(default_factory=dict)
    spares: int = 0

    def __str__(self) -> str:
        facts = f"job `{self.name}`: {self.state.value}, {self.running_seconds:.1f} s, {self.completed_checkpoints} checkpoints"
        problem = () if self.error is None else (f"error: {self.error}", *getattr(self.error, "__notes__", ()))
        return "\n".join((facts, f"{len(self.workers)} workers: {', '.join(self.workers)}", *problem))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What stays of a job that has ended; `loads` by operator, `answers` by question: those that may still be asked."""

    status: JobStatus
    figures: list[WorkerFigures] = field(default_factory=list)
    loads: dict[str, OperatorLoad] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Progress:
    """What the driver polls: the job's state, and the sinks' payloads from a given number on, counted anew by each `incarnation`."""

    state: JobState
    error: EvenflowError | None
    deliveries: tuple[tuple[str, Any], ...]
    incarnation: str = ""


class Supervisor:
    """Used by one thread at a time."""

    def __init__(
        self,
        plan: Plan,
        config: JobConfig,
        tell: Callable[[str, Command], None],
        carry: Callable[[Redeploy | Spawn | Retire], None],
        *,
        savepoint: Savepoint | None = None,
        run: str | None = None,
        resume: bool = False,
        memory: RunMemory | None = None,
        cluster: Cluster | None = None,
        leave: Callable[[SupersededError], NoReturn] = stop_here,
    ) -> None:
        """`carry` must bring up the attempt or the workers that it is told of, or end workers, in its own time.

        `resume`: go on from the newest checkpoint of `run`, in place of a supervisor that was lost; `memory` knows what that knew.
        `cluster`: the nodes, None where there are none. `leave` is called once another has taken this one's place, and must not return.
        """
        self._memory = memory if memory is not None else RunMemory()
        url = config.checkpoint.url(plan.name)
        self.saved = SavedState(url, config.checkpoint.kept, run if run is not None else secrets.token_hex(8), leave)
        self._beginning = Beginning(self.saved, savepoint)
        restored = self._begin_term() if resume else None
        undelivered = restored.undelivered if restored is not None else ()
        if restored is not None:
            plan = plan_at(restored, plan)
        elif (restored := self._beginning.manifest(plan)) is not None:
            plan = plan.with_tables(fitting_tables(restored, plan))
        known = self._memory.record
        self.core = JobCore(plan, config.job_settings(), restored, known.committed)
        if resume:
            self.saved.discard_unfinished(known.committed)
        # The process that was lost knew how many attempts there were, and what it left behind must not be taken for that of a new one.
        self.core.attempt = first_attempt(self.saved.term)
        self.core.checkpoints.last = max(self.saved.last, self.core.committed)
        self.core.checkpoints.completed = known.completed
        self._carry = carry
        self._deliveries: list[tuple[str, Any]] = list(undelivered)
        self.metrics = JobMetrics({task.name: task.stage for task in plan.tasks})
        self.elastic = Elasticity(self)
        self.nodes = NodeScaling(self, config, cluster)
        self.autoscaling = Autoscaling(self, config)
        self._sinks = plan_sinks(plan)
        self._tell = tell
        self._delivered = 0
        self._taken_over = False
        self._begun = None if known.running_since is None else time.monotonic() - max(0.0, time.time() - known.running_since)
        self._ended: float | None = None
        self._config = config
        self._spans: dict[int, float] = {}
        self._balancings: dict[str, Balancing] = {}
        if config.balance.policy != OFF:
            for stage in plan.stages:
                if stage.is_keyed:
                    self.balancer(stage.name, config.balance.policy)

    def first(self) -> Redeploy:
        """How the job begins."""
        return Redeploy(self.core.attempt, self.core.plan, self.core.checkpoints.newest, 0.0)

    def redeploy(self) -> None:
        """Begin where the newest checkpoint ends."""
        self._carry_out(self.core.redeploy())

    def _begin_term(self) -> Manifest | None:
        """Take the place of the supervisor that was lost; the checkpoint to go on from."""
        restored = self.saved.take_over(self._memory.record.term)
        self._memory.keep(replace(self._memory.record, term=self.saved.term))
        return restored

    def recommit(self, wanted: Redeploy) -> bool:
        """Commit what an attempt begins from, to be called before it is brought up; False if it can't be, and another attempt follows."""
        self.saved.stay_in_charge()
        if wanted.retracts and not self._take_back(wanted.manifest.checkpoint if wanted.manifest is not None else 0):
            return False
        if wanted.commit is not None and not self._commit(wanted.commit):
            return False
        self._sweep()
        self._take_over()
        return True

    def ready(self, worker: str, attempt: int) -> None:
        """A worker has started in this attempt."""
        if attempt != self.core.attempt:
            return
        now, starting = time.monotonic(), self._begun is None and self.core.starting
        effects = self.core.ready(worker, now)
        if starting and not self.core.starting:
            self._memory.keep(replace(self._memory.record, running_since=time.time()))
            self._begun = now
        self._carry_out(effects)

    def report(self, worker: str, report: Report) -> None:
        """A worker's report, in the order in which the worker sent it."""
        if isinstance(report, WorkerWindow):
            self.metrics.add(report)
            if (balancing := self._balancings.get(stage := report.worker.rpartition("-")[0])) is not None:
                balancing.add(report, self.core.migrations.tables[stage])
        elif isinstance(report, Failed):
            self._failed(report.error if isinstance(report.error, EvenflowError) else JobFailedError(str(report.error)))
        else:
            self._carry_out(self.core.report(worker, report, time.monotonic()))

    def lost(self, worker: str, why: str) -> None:
        """A worker's process is gone."""
        self._carry_out(self.core.lost(worker, why, time.monotonic()))

    def failed(self, error: EvenflowError) -> None:
        """An attempt could not be deployed."""
        self._failed(error)

    def abort(self, error: EvenflowError) -> None:
        """Something failed that starting again would not help: a source's query, the first deployment."""
        self._carry_out(self.core.abort(error))

    def not_started(self, error: Exception) -> bool:
        """The first deployment failed. Whether that ends the job: what its first workers met may have ended it before all had begun."""
        if self.core.state.final:
            return False
        self.abort(error if isinstance(error, EvenflowError) else JobFailedError(f"job `{self.core.name}` did not start: {error}"))
        return True

    def tick(self) -> None:
        """Called a few times a second."""
        self._carry_out(self.core.tick(time.monotonic()))
        self.elastic.tick()
        self.nodes.tick()
        for name in self._balancings:
            self._balance(name)
        self.autoscaling.tick(time.monotonic())

    def stop(self) -> None:
        """Let the sources end; everything read is processed and committed."""
        self._carry_out(self.core.stop())

    def cancel(self) -> None:
        """End at once."""
        self._carry_out(self.core.cancel())

    def progress(self, seen: int) -> Progress:
        """The state, and the payloads from number `seen` on; earlier ones are let go."""
        drop = seen - self._delivered
        if drop > 0:
            del self._deliveries[:drop]
            self._delivered = seen
        return Progress(self.core.state, self.core.error, tuple(self._deliveries))

    def status(self) -> JobStatus:
        """What `job.status()` shows."""
        until = self._ended if self._ended is not None else time.monotonic()
        running = until - self._begun if self._begun is not None else 0.0
        core = self.core
        return JobStatus(core.name, core.state, core.error, core.workers, core.checkpoints.completed, running, attempt=core.attempt)

    def figures(self) -> list[WorkerFigures]:
        """What `job.metrics()` shows."""
        return self.metrics.workers()

    def load(self, operator: str, windows: int = HISTORY) -> OperatorLoad:
        """What `job.load()` shows. Raises RequestError if there is no such operator, naming those there are."""
        return self.metrics.load(self.core.plan.stage_of(operator).name, windows)

    def loads(self) -> dict[str, OperatorLoad]:
        """The load of every operator."""
        return {chained.name: self.metrics.load(stage.name) for stage in self.core.plan.stages for chained in stage.chain}

    def answers(self) -> dict[str, Any]:
        """What is known of a job after its end, by question."""
        return {
            "migrations": self.migrations(),
            "scalings": self.scalings(),
            "node_scalings": self.node_scalings(),
            "decisions": self.decisions(),
            "checkpoints": self.checkpoints(),
        }

    def snapshot(self, operator: str, newest: int | None = None) -> LoadSnapshot:
        """The load of an operator with keyed state over its `newest` windows (None: `balance_windows`), as balancers see it."""
        stage, count = self._keyed_stage(operator), self._config.balance.windows if newest is None else newest
        windows = [self.metrics.history(f"{stage.name}-{i}")[-count:] for i in range(stage.parallelism)]
        return load_snapshot(windows, self.core.migrations.tables[stage.name])

    def rebalance(self, operator: str, policy: str, strategy: str | None) -> int:
        """Plan by the balancer `policy` and begin to move by `strategy`; the migration's number.

        Raises RequestError for an unknown operator, balancer or strategy, JobError if the job is not running or moves something already.
        """
        stage = self._keyed_stage(operator)
        table = self.core.migrations.tables[stage.name]
        plan = named(policy).plan(self.snapshot(operator))
        return self._migrate(stage, strategy, plan.table(table, hash_of), f"{policy}: {plan.reason}", plan)

    def migrate(self, operator: str, groups: Sequence[int], keys: Sequence[Hashable], to: int, strategy: str | None) -> int:
        """Begin to move key groups and single keys to worker `to`; the migration's number. Raises as `rebalance` does."""
        stage = self._keyed_stage(operator)
        table = self.core.migrations.tables[stage.name]
        if not len(groups) and not len(keys):
            raise RequestError(f"operator `{operator}`: nothing to move: give groups=[...] or keys=[...]")
        if not isinstance(to, int) or isinstance(to, bool) or not 0 <= to < stage.parallelism:
            raise RequestError(
                f"operator `{operator}` has no worker {to!r}: its {stage.parallelism} workers are 0 to {stage.parallelism - 1}"
            )
        wrong = [group for group in groups if not isinstance(group, Integral) or not 0 <= int(group) < len(table)]
        if wrong:
            raise RequestError(f"operator `{operator}` has no key group {wrong[0]!r}: its groups are 0 to {len(table) - 1}")
        target = table.groups.copy()
        target[list(groups)] = to
        routes = {**table.keys, **{hash_of(key): to for key in keys}}
        return self._migrate(stage, strategy, RoutingTable(target, routes), "by hand", None)

    def balancer(self, operator: str, policy: str) -> None:
        """Balance an operator automatically from now on, or no longer if `policy` is `off`. Raises RequestError as `rebalance` does."""
        stage = self._keyed_stage(operator)
        if check_balancer(policy) == OFF:
            self._balancings.pop(stage.name, None)
        else:
            workers = tuple(f"{stage.name}-{i}" for i in range(stage.parallelism))
            self._balancings[stage.name] = Balancing(policy, workers, self._config)

    def scale(self, operator: str, parallelism: int, strategy: str | None) -> int:
        """Begin to give the operator so many workers; the scaling's number. Raises as `Elasticity.scale` does."""
        return self.elastic.scale(operator, parallelism, strategy)

    def scalings(self) -> list[ScalingReport]:
        """The newest scalings of the job, oldest first."""
        return self.elastic.reports()

    def scale_out(self, nodes: int) -> int:
        """Begin to use so many nodes more; the order's number. Raises as `NodeScaling.scale_out` does."""
        return self.nodes.scale_out(nodes)

    def scale_in(self) -> int:
        """Begin to give a node back; the order's number. Raises as `NodeScaling.scale_in` does."""
        return self.nodes.scale_in()

    def node_scalings(self) -> list[NodeScalingReport]:
        """The nodes that came and went, oldest first."""
        return self.nodes.reports()

    def autoscaler(self, policy: str, mode: Mode) -> None:
        """Scale all operators by a policy from now on, or no longer if it is `off`. Raises as `Autoscaling.choose` does."""
        self.autoscaling.choose(policy, mode)

    def decisions(self) -> list[DecisionRecord]:
        """What the scaling policies decided, oldest first."""
        return self.autoscaling.decisions()

    def rescale(self, stage: Stage, parallelism: int, reason: str) -> int:
        """Let workers join or leave; the rescale's number. Raises as `JobCore.rescale` does."""
        rescaling, effects = self.core.rescale(stage, parallelism, reason, time.monotonic())
        self._carry_out(effects)
        return rescaling.number

    def not_spawned(self, problem: str) -> None:
        """Workers that were to join did not start."""
        self._carry_out(self.core.not_spawned(problem, time.monotonic()))

    def move(self, stage: Stage, strategy: str | None, target: RoutingTable, reason: str) -> int:
        """Begin to move keys so that `target` holds; the migration's number."""
        return self._migrate(stage, strategy, target, reason, None)

    def checkpoint(self) -> int:
        """Begin a checkpoint as soon as none is under way; its number. Raises JobNotRunningError if the job is not running."""
        return self.core.checkpoint(time.monotonic())

    def checkpoints(self) -> list[CheckpointReport]:
        """The job's checkpoints, oldest first."""
        return self.core.checkpoints.reports(time.monotonic(), self.core.workers)

    def savepoint(self, path: str) -> int:
        """Begin a savepoint; its checkpoint's number. Raises RequestError without a folder for checkpoints, or if `path` is taken."""
        number = self.core.checkpoint(time.monotonic(), whole=True)
        self.saved.ask_savepoint(number, path)
        return number

    def savepoint_state(self, number: int) -> tuple[bool, str | None]:
        """Whether savepoint `number` is done, and why it could not be taken."""
        found = self.saved.savepoint(number)
        return found.done, found.problem

    def migrations(self) -> list[MigrationReport]:
        """The newest migrations of the job, oldest first."""
        return [self._with_latency(migration) for migration in self.core.migrations.history]

    def _migrate(self, stage: Stage, strategy: str | None, target: RoutingTable, reason: str, plan: BalancePlan | None) -> int:
        chosen = strategy if strategy is not None else self._config.migration_strategy
        table = self.core.migrations.tables[stage.name]
        newest = [self.metrics.newest(f"{stage.name}-{i}") for i in range(stage.parallelism)]
        planned = plan_steps(chosen, table, target, groups_per_step(newest, table))
        steps = [HandoverStep(0, step.moves, step.lazy, step.pause) for step in planned]
        migration, effects = self.core.migrate(stage, chosen, steps, reason, time.monotonic(), plan)
        first = self.core.migrations.history.first
        self._spans = {number: begun for number, begun in self._spans.items() if number >= first} | {migration.number: time.time()}
        self._carry_out(effects)
        return migration.number

    def _balance(self, name: str) -> None:
        core, balancing = self.core, self._balancings[name]
        workers = tuple(f"{name}-{i}" for i in range(core.plan.stage_of(name).parallelism))
        if workers != balancing.workers:
            balancing = self._balancings[name] = Balancing(balancing.policy, workers, self._config)
        busy = core.migrations.current is not None or core.rescaling is not None or self.elastic.busy
        moving = core.state is not JobState.RUNNING or busy
        decided = balancing.decide(core.migrations.tables[name], moving=moving)
        if decided is not None:
            reason = f"{balancing.policy}, automatic: {decided.plan.reason}"
            self._migrate(self._keyed_stage(name), None, decided.target, reason, decided.plan)

    def _with_latency(self, migration: Migration) -> MigrationReport:
        report = migration.report()
        begun = self._spans[migration.number]
        until = begun + report.seconds if report.seconds is not None else time.time()
        return replace(report, latency_ms=self.metrics.latency_between(begun, until))

    def _keyed_stage(self, operator: str) -> Stage:
        stage = self.core.plan.stage_of(operator)
        if not stage.is_keyed:
            keyed = ", ".join(s.name for s in self.core.plan.stages if s.is_keyed) or "none"
            raise RequestError(f"operator `{operator}` has no keyed state to move; operators that have: {keyed}")
        return stage

    def _carry_out(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Tell):
                self._tell(effect.worker, effect.command)
            elif isinstance(effect, Commit):
                if not self._commit(effect):
                    return
            elif isinstance(effect, Save):
                self._save(effect)
            elif isinstance(effect, Discard):
                self.saved.discard(effect.checkpoint, effect.problem)
            elif isinstance(effect, (Redeploy, Spawn, Retire)):
                self._staff(effect)
                self._carry(effect)
            else:
                self._ended = time.monotonic()
                if effect.state is JobState.FINISHED:
                    self._sweep()

    def _staff(self, change: Redeploy | Spawn | Retire) -> None:
        """Who there are figures of."""
        there = {figures.worker for figures in self.metrics.workers()}
        if isinstance(change, Redeploy):
            joining, leaving = {task.name for task in change.plan.tasks} - there, there - {task.name for task in change.plan.tasks}
        else:
            joining, leaving = (set(change.workers), set()) if isinstance(change, Spawn) else (set(), set(change.workers))
        for name in leaving:
            self.metrics.leave(name)
        for name in sorted(joining):
            self.metrics.join(name, name.rpartition("-")[0])

    def _failed(self, error: EvenflowError) -> None:
        now = time.monotonic()
        if isinstance(error, CorruptCheckpointError):
            try:
                older = self._beginning.instead_of(error, self.core.plan)
            except EvenflowError as unusable:
                self.abort(unusable)
                return
            self._carry_out(self.core.unreadable(error.checkpoint, error.problem, older, now))
        else:
            self._carry_out(self.core.failed(error, now))

    def _save(self, save: Save) -> None:
        manifest = replace(save.manifest, undelivered=tuple(self._deliveries))
        problem = self.saved.complete(manifest)
        self._carry_out(self.core.saved(manifest.checkpoint, problem, time.monotonic()))

    def _take_back(self, after: int) -> bool:
        try:
            allowed, committed = self._config.checkpoint.allow_duplicates, self.core.committed
            self._deliveries += take_back(self.core.name, after, committed, self._sinks, self.saved, allow_duplicates=allowed)
        except JobFailedError as error:
            self.abort(error)
        except Exception as error:  # noqa: BLE001 -- as in a commit
            self._failed(error if isinstance(error, EvenflowError) else JobFailedError(f"{type(error).__name__}: {error}"))
        else:
            return True
        return False

    def _commit(self, commit: Commit) -> bool:
        who = f"job `{self.core.name}`"
        try:
            committed = max(self._memory.record.committed, commit.checkpoint)
            self._memory.keep(replace(self._memory.record, committed=committed, completed=self.core.checkpoints.completed))
            for name, sink in self._sinks.items():
                who = f"sink `{name}`"
                self._deliveries.extend((name, payload) for payload in sink.commit(commit.checkpoint, commit.committables.get(name, [])))
        except Exception as error:  # noqa: BLE001 -- a sink is the user's or a library's: whatever it raises fails the job
            problem = f"{who} could not commit checkpoint {commit.checkpoint}: {type(error).__name__}: {error}"
            self.core.state = JobState.RUNNING
            self._failed(error if isinstance(error, EvenflowError) else JobFailedError(problem))
            return False
        return True

    def _sweep(self) -> None:
        self._tidy(lambda sink: sink.sweep(), "what nobody will commit")

    def _take_over(self) -> None:
        if not self._taken_over:
            self._taken_over = True
            job = f"{self.core.name} {self._config.checkpoint.url(self.core.name) or ''}"
            self._tidy(lambda sink: sink.take_over(job, self.saved.committables), "what killed runs have left")

    def _tidy(self, remove: Callable[[Sink], None], what: str) -> None:
        for name, sink in self._sinks.items():
            try:
                remove(sink)
            except Exception as error:  # noqa: BLE001 -- as in a commit; nothing depends on what is left
                _LOG.warning("job `%s`: sink `%s` could not remove %s: %s", self.core.name, name, what, error)


def plan_sources(plan: Plan) -> dict[str, Source]:
    """The sources of a plan by operator name."""
    return {c.name: c.operator.source for stage in plan.stages for c in stage.chain if isinstance(c.operator, Read)}


def plan_sinks(plan: Plan) -> dict[str, Sink]:
    """The sinks of a plan by operator name."""
    return {c.name: c.operator.sink for stage in plan.stages for c in stage.chain if isinstance(c.operator, Write)}
