"""The data that the parts of a job's state machine share: the plan, the state, its history, and the effects to carry out.

Invariant: effects are taken in the order in which they were emitted, each with the event that caused it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import replace

from ...balancer.snapshot import LoadSnapshot
from ...engine.errors import RequestError, shown
from ...engine.plan.physical import Plan, Stage
from ...engine.protocol.effects import OperatorProblem
from ...engine.protocol.ids import WorkerId
from ...state.errors import EvenflowError
from ..configs.changes import changed, from_plain
from ..configs.job import JobConfig
from ..load.dropped_records import DroppedRecords
from ..load.load_snapshot import load_snapshot
from ..load.long_call import LongCall
from ..load.metrics import JobMetrics, OperatorLoad
from ..load.progress import Progress
from ..load.quiet_inputs import QuietInputs
from ..protocol.effects import Effect, JobState, StopOrder
from ..protocol.failures import Failure
from ..protocol.restore_point import RestorePoint
from .checkpoints import Checkpoints
from .migrations import Migrations
from .newest import Newest
from .operation import Operations
from .rescaling import Rescaling
from .upgrade import Upgrade

STORY = 40
"""Events that are remembered."""

PROBLEMS = 10
"""Problems of operators that are remembered."""


FAILURES = 20
"""Failures that are remembered."""


class JobRecord:
    """The record of one job.

    `now`: the time of the event that is being handled, in seconds since the epoch, by a clock that never decreases. `workers`:
    the names of all workers of the plan; `sources`: of those that read sources.
    """

    workers: tuple[WorkerId, ...]
    sources: frozenset[WorkerId]

    def __init__(self, plan: Plan, config: JobConfig, begin: RestorePoint) -> None:
        self.plan = plan
        self.begun_with = config
        """The settings with which the job was started."""
        self.changed_settings = begin.settings
        """Their changes since then that later coordinators know."""
        self.config = changed(config, from_plain(begin.settings.values))
        self.state = JobState.STARTING
        self.error: EvenflowError | None = None
        self.attempt = begin.attempt
        self.restarts, self.next_try = 0, 0.0
        """The number of restarts, and the time at which the newest attempt begins or began."""
        self.restart_causes: Counter[str] = Counter()
        """The number of restarts by the class of the error that caused them, or `requested`."""
        self.trouble: tuple[EvenflowError, str] | None = None
        """The error that caused the last restart, and its description; None if that restart was requested."""
        self.completed_before = 0
        """The number of checkpoints that were complete at the last restart."""
        self.now = 0.0
        self.ready: set[WorkerId] = set()
        self.discarded = False
        self.holds_checkpoints = False
        """True while the code to which the job may go back could not restore a checkpoint."""
        self.stop_asked: StopOrder | None = begin.stop
        """The requested way of stopping, if any; it remains after a restart."""
        self.checkpoints = Checkpoints(begin)
        self.migrations = Migrations(plan.tables)
        self.problems: deque[str] = deque(maxlen=PROBLEMS)
        self.quiet = QuietInputs()
        self.progress = Progress()
        self.long_calls: Mapping[WorkerId, LongCall] = {}
        """The workers whose threads have been in one call for long, as the runtime last knew."""
        self.rescales = Operations[Rescaling]()
        self.upgrades = Operations[Upgrade]()
        self.failures = Newest[Failure](FAILURES)
        self.dropped_records = DroppedRecords()
        self.metrics = JobMetrics({task.name: task.stage for task in plan.tasks})
        self._effects: list[Effect] = []
        self._story: deque[str] = deque(maxlen=STORY)
        self._event = ""

    @property
    def name(self) -> str:
        return self.plan.name

    @property
    def plan(self) -> Plan:
        """The physical plan, as it is now."""
        return self._plan

    @plan.setter
    def plan(self, plan: Plan) -> None:
        self._plan = plan
        self.workers = tuple(task.name for task in plan.tasks)
        self.sources = frozenset(worker for stage in plan.stages if stage.is_source for worker in stage.workers)

    @property
    def finished(self) -> frozenset[WorkerId]:
        """The workers that have sent their last element."""
        return self.checkpoints.finished

    @property
    def reading(self) -> frozenset[WorkerId]:
        """The workers whose sources have not ended."""
        return self.sources - self.finished

    @property
    def all_finished(self) -> bool:
        leaving = self.rescaling.rescale.leaving if self.rescaling is not None else ()
        return self.finished.issuperset((*self.workers, *leaving))

    @property
    def stop_wanted(self) -> bool:
        """True if a stop was requested and has not begun: until it begins, no change and no checkpoint does."""
        return self.stop_asked is not None and self.state is not JobState.STOPPING

    @property
    def rescaling(self) -> Rescaling | None:
        """The rescale under way."""
        return self.rescales.current

    @property
    def completed_since(self) -> bool:
        """True if a checkpoint was completed since the last restart."""
        return self.checkpoints.completed > self.completed_before

    @property
    def ails(self) -> bool:
        """True until the job has recovered from a failure: it restarts, or has neither completed a checkpoint nor been quiet
        since.
        """
        settled = self.completed_since or self.now - self.next_try > self.config.restart.quiet_s
        return self.state is JobState.RESTARTING or (self.trouble is not None and not self.state.final and not settled)

    @property
    def in_step(self) -> bool:
        """True if the routing or the workers are being changed just now, so that no checkpoint and no stop may begin."""
        return self.migrations.in_step or (self.rescaling is not None and self.rescaling.exclusive)

    def happens(self, event: str, now: float) -> None:
        """Begin an event, which becomes the cause of the following effects."""
        self.now, self._event = now, event
        self._story.append(f"{now:.3f} {event}")

    def passes(self, now: float) -> None:
        """Advance the time without an entry in the story."""
        self.now, self._event = now, "time has passed"

    @property
    def story(self) -> str:
        """The last events, oldest first, for an error that should not happen."""
        return "\n".join(self._story)

    def emit(self, *effects: Effect) -> None:
        """Emit effects, with the current event as their cause."""
        self._effects += [replace(effect, cause=self._event) for effect in effects]

    def take_effects(self) -> list[Effect]:
        """Return the effects to carry out, in order, and forget them."""
        effects, self._effects = self._effects, []
        return effects

    def note(self, problem: OperatorProblem) -> None:
        """Note a problem of an operator that does not end the job; several workers may report the same one."""
        text = f"operator `{problem.operator}`: {problem.problem}"
        if text in self.problems:
            self.problems.remove(text)
        self.problems.append(text)

    def describe(self, error: EvenflowError, worker: WorkerId | None = None) -> str:
        """Describe an error in a line: its worker, the worker's operators, and the first line of the error."""
        text = shown(error).partition("\n")[0]
        runs = next((task.operators for task in self.plan.tasks if task.name == worker), None)
        return text if runs is None else f"worker {worker} ({runs}): {text}"

    def loads(self) -> dict[str, OperatorLoad]:
        """Return the load of every operator."""
        return {chained.name: self.metrics.load(stage.name) for stage in self.plan.stages for chained in stage.chain}

    def snapshot(self, operator: str, windows: int) -> LoadSnapshot:
        """Return the load of an operator with keyed state over its newest `windows`."""
        stage = self.keyed_stage(operator)
        newest = [self.metrics.complete(worker, windows) for worker in stage.workers]
        return load_snapshot(newest, self.migrations.tables[stage.name], stage.dealable)

    def keyed_stage(self, operator: str) -> Stage:
        """Return the stage of an operator. Raises RequestError if there is no such operator, or it has no keyed state."""
        stage = self.plan.stage_of(operator)
        if not stage.is_keyed:
            keyed = ", ".join(s.name for s in self.plan.stages if s.is_keyed) or "none"
            raise RequestError(f"operator `{operator}` has no keyed state to move; operators that have: {keyed}")
        return stage
