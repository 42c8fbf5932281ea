"""A migration: a sequence of steps that changes an operator's routing table while the stream runs, without I/O.

Invariant: at most one step of a job is under way, and no checkpoint is; a step is over when every move's target has all the state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...balancer.plan import BalancePlan
from ...engine.protocol.handover_step import Arrived, HandoverStep, partners, steps_by_worker
from ...engine.protocol.ids import NO_STEP, CheckpointNumber, StepVersion, WorkerId, WorkerNumber, index_of
from ...engine.protocol.routing import RoutingTable
from ..protocol.messages import Announce, Announced, Commands, Resume, Switch
from ..protocol.reports import MigrationReport, MigrationState
from .operation import Operation, Operations


@dataclass(slots=True)
class Migration(Operation[MigrationState]):
    """A sequence of steps that moves keys of `stage`.

    `feeders`: workers that send to the stage; `members`: its own workers, with their numbers. `requested`: seconds since the epoch.
    `uninformed`: workers that have yet to answer its announcement. A migration by the strategy `restart` waits for `checkpoint`, and
    the job restarts with `tables`.
    """

    stage: str
    strategy: str
    steps: tuple[HandoverStep, ...]
    feeders: frozenset[WorkerId]
    members: Mapping[WorkerId, WorkerNumber]
    plan: BalancePlan | None
    requested: float = 0.0
    steps_done: int = 0
    keys_moved: int = 0
    state_bytes: int = 0
    uninformed: set[WorkerId] = field(default_factory=set)
    arrived: set[tuple[int, int]] = field(default_factory=set)
    in_step: bool = False
    checkpoint: CheckpointNumber | None = None
    tables: Mapping[str, RoutingTable] = field(default_factory=dict)

    @property
    def step(self) -> HandoverStep:
        """The step under way, or the next."""
        return self.steps[self.steps_done]

    def note(self, target: int, arrived: Arrived) -> None:
        """Note that a move of the step under way is complete."""
        self.arrived.add((arrived.source, target))
        self.keys_moved += arrived.keys
        self.state_bytes += arrived.state_bytes

    def may_step(self, finished: frozenset[WorkerId]) -> bool:
        """Return True if every worker that takes part knows the steps, and one is left to begin."""
        left = self.state is MigrationState.RUNNING and not self.in_step and self.steps_done < len(self.steps)
        return left and self.uninformed <= finished

    def announce(self, finished: frozenset[WorkerId]) -> Commands:
        """Return the messages that tell the steps to the workers that take part and run."""
        whole = Announce(self.number, self.stage, self.steps)
        told, names = dict.fromkeys(self.feeders, whole), {index_of(worker): worker for worker in self.members}
        for index, steps in steps_by_worker(self.steps).items():
            peers = {names[other]: self.members[names[other]] for other in partners(index, steps)}
            told[names[index]] = Announce(self.number, self.stage, steps, peers)
        self.uninformed = set(told) - finished
        return [(worker, told[worker]) for worker in sorted(self.uninformed)]

    def end(self, state: MigrationState, now: float, problem: str | None = None) -> None:
        """End the migration, also in the middle of a step."""
        self.in_step = False
        Operation.end(self, state, now, problem)

    @property
    def takers(self) -> frozenset[WorkerId]:
        """The workers that take state in the step. One at which the step has begun reports its moves before it finishes."""
        targets = {move.target for move in self.step.moves}
        return frozenset(worker for worker in self.members if index_of(worker) in targets)

    @property
    def complete(self) -> bool:
        """True if every move of the step has arrived."""
        if len(self.arrived) < len(self.step.moves):  # a step has one move for each pair of workers
            return False
        return self.arrived.issuperset((move.source, move.target) for move in self.step.moves)

    def report(self) -> MigrationReport:
        """Return the migration for `job.migrations()`."""
        moves = [move for step in self.steps for move in step.moves]
        return MigrationReport(
            number=self.number,
            state=self.state,
            reason=self.reason,
            began_at=self.begun,
            seconds=self.seconds,
            problem=self.problem,
            operator=self.stage,
            strategy=self.strategy,
            plan=self.plan,
            groups=sum(len(move.groups) for move in moves),
            routed_keys=sum(len(move.keys) for move in moves),
            steps=len(self.steps),
            steps_done=self.steps_done,
            keys_moved=self.keys_moved,
            state_bytes=self.state_bytes,
        )


class Migrations:
    """The migrations of a job, one at a time, and the routing tables as they are."""

    def __init__(self, tables: dict[str, RoutingTable]) -> None:
        self.tables = tables
        self.history = Operations[Migration]()
        self.newest_step = NO_STEP
        """The newest step that has begun."""
        self._versions = 0

    def add(
        self,
        stage: str,
        strategy: str,
        reason: str,
        steps: Sequence[HandoverStep],
        feeders: frozenset[WorkerId],
        members: Mapping[WorkerId, WorkerNumber],
        plan: BalancePlan | None,
        requested: float = 0.0,
    ) -> Migration:
        """Add a migration that was requested at `requested`, in seconds since the epoch; its steps get the next versions."""
        numbered = []
        for step in steps:
            self._versions += 1
            numbered.append(HandoverStep(StepVersion(self._versions), step.moves, step.lazy, step.pause))
        migration = Migration(
            stage,
            strategy,
            tuple(numbered),
            feeders,
            members,
            plan,
            requested,
            number=len(self.history),
            state=MigrationState.WAITING,
            reason=reason,
        )
        self.history.append(migration)
        return migration

    def note(self, worker: WorkerId, report: Announced | Arrived) -> None:
        """Note the progress of a worker with the migration under way; reports about another migration are ignored."""
        current = self.current
        if current is None:
            return
        if isinstance(report, Announced):
            if report.number == current.number:
                current.uninformed.discard(worker)
        elif current.in_step and report.version == current.step.version:
            current.note(index_of(worker), report)

    def advance(self, *, finished: frozenset[WorkerId], running: bool, free: bool, now: float) -> Commands | None:
        """Return the next commands of the migration under way, None while answers are missing.

        `running`: the job runs and is not asked to stop; `free`: no checkpoint is under way.
        """
        current = self.current
        if current is None:
            return None
        if current.state is MigrationState.WAITING:
            current.state, current.begun = MigrationState.RUNNING, now
            return current.announce(finished)
        feeding = current.feeders - finished
        if current.in_step:
            return self._advance_step(current, feeding, finished, now)
        if current.steps_done == len(current.steps):
            current.end(MigrationState.DONE, now)
        elif not feeding or not running:
            current.end(MigrationState.ENDED_EARLY, now)
        elif not free or not current.may_step(finished):
            return None
        else:
            current.in_step, self.newest_step = True, current.step.version
            current.arrived = set()
            return [(worker, Switch(current.step.version)) for worker in sorted(feeding)]
        return []

    def _advance_step(self, current: Migration, feeding: frozenset[WorkerId], finished: frozenset[WorkerId], now: float) -> Commands | None:
        if not current.complete:
            if feeding or not current.takers <= finished:
                return None
            current.end(MigrationState.ENDED_EARLY, now)  # every upstream worker ended before it could make the step
            return []
        step = current.step
        self.end_step(current)
        return [(worker, Resume()) for worker in sorted(feeding)] if step.pause else []

    def end_step(self, migration: Migration) -> None:
        """End the step under way: its routing table holds from here on."""
        self.tables[migration.stage] = self.tables[migration.stage].after(migration.step.moves)
        migration.in_step = False
        migration.steps_done += 1

    @property
    def current(self) -> Migration | None:
        """The migration under way."""
        return self.history.current

    @property
    def in_step(self) -> bool:
        """True while a step is under way, so that no checkpoint may begin."""
        current = self.current
        return current is not None and current.in_step
