"""A coordinator of the simulation: the interpreter that also runs on Ray, with simulated workers and storage."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ...actors.job.job_interpreter import JobInterpreter
from ...engine.plan.physical import Plan
from ...engine.protocol.ids import NO_CHECKPOINT, Attempt, WorkerId
from ...engine.sink import Sink
from ...scheduler.configs.job import JobConfig
from ...scheduler.job.core import JobCore
from ...scheduler.load.long_call import LongCall
from ...scheduler.policies.nodes.placement import ClusterView
from ...scheduler.protocol.changed_settings import ChangedSettings
from ...scheduler.protocol.effects import Deploy, Spawn
from ...scheduler.protocol.messages import Command
from ...scheduler.protocol.requests import Request, ShowProgress, ShowStatus
from ...scheduler.protocol.restore_point import RestorePoint
from ...scheduler.protocol.storage_answers import Delivery
from ...scheduler.record.restoring.terms import Terms, first_attempt
from .job_storage import SimulatedStorage
from .ledger import Ledger
from .nodes import SimulatedNodes
from .storage import MemoryStorage
from .workers import Ready, SimulatedReport, SimulatedWorker

A = TypeVar("A")


@dataclass(slots=True)
class Clock:
    """A virtual clock: `now` in seconds."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass(slots=True)
class JobCounts:
    """Counters of a simulated job: `restarts`, and those that restored a checkpoint (`recoveries`)."""

    restarts: int = 0
    recoveries: int = 0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The parts of a simulated job that outlive its coordinator. `workers`: those of the current attempt; the others start and end them.

    `replan(parallelism)`: the plan of the flow with another number of workers.
    """

    plan: Plan
    config: JobConfig
    sinks: Mapping[str, Sink]
    storage: MemoryStorage
    ledger: Ledger
    clock: Clock
    counts: JobCounts
    workers: dict[WorkerId, SimulatedWorker]
    deploy: Callable[[Deploy], None]
    spawn: Callable[[Spawn], None]
    retire: Callable[[tuple[WorkerId, ...]], None]
    nodes: SimulatedNodes
    replan: Callable[[int], Plan]


class SimulatedCoordinator:
    """The coordinator of the job's newest term. It is its interpreter's `Workers`; work that takes time there waits for the schedule."""

    def __init__(self, around: Surroundings, terms: Terms, begin: RestorePoint) -> None:
        self._around, self._terms = around, terms
        self.workers = around.workers
        self.storage = SimulatedStorage(around.storage, around.ledger, around.sinks, terms, resumes=begin.resumes)
        self.core = JobCore(around.plan, around.config, begin)
        self.interpreter = JobInterpreter(self.core, self, self.storage, around.clock)
        self.wanted: Deploy | None = None
        self.spawns: deque[Spawn] = deque()
        self.leaves = False
        """True if the process is to end, because its node drains."""
        self.ticked_at = 0.0
        """The time up to which it has let time pass."""
        self._seen = 0
        self._alone = False
        self.reserved_for: tuple[WorkerId, ...] = ()
        """The workers for which spares start; `reserved`: all have."""
        self.reserved = True

    def begin(self) -> None:
        """Start the job, or resume it."""
        self.interpreter.begin()

    @property
    def over(self) -> bool:
        """True if the job has ended and all its commits are delivered."""
        return self.core.state.final and not self.deliveries

    @property
    def deliveries(self) -> tuple[Delivery, ...]:
        """The number of payloads that the driver does not have yet; it ignores a coordinator that was declared lost."""
        return () if self._alone else self.core.checkpointing.deliveries.pending

    @property
    def all_storage(self) -> MemoryStorage:
        """The storage that all coordinators of the job share."""
        return self._around.storage

    @property
    def counts(self) -> JobCounts:
        """The job's counters so far."""
        return self._around.counts

    @property
    def superseded(self) -> bool:
        """True if it has found that another coordinator has begun, and has ended."""
        return self.storage.superseded

    def receive(self, worker: WorkerId, attempt: Attempt, reports: Iterable[SimulatedReport]) -> None:
        """Take reports of a worker, in the order in which it sent them."""
        for report in reports:
            if isinstance(report, Ready):
                self.interpreter.ready(worker, attempt)
            else:
                self.interpreter.report(worker, attempt, report)

    def ask(self, request: Request[A]) -> A:
        """Send the job a request."""
        return self.interpreter.ask(request)

    def do(self, change: Callable[[], object]) -> None:
        """Begin a change for which there is no request."""
        self.core.record.happens("a change", self._around.clock.now)
        change()
        self.interpreter.ask(ShowStatus())  # which carries out what the change wants

    def tick(self) -> None:
        """Let time pass."""
        self.ticked_at = self._around.clock.now
        self.interpreter.tick()

    def store(self) -> None:
        """Carry out the next step of storage."""
        self.storage.step(self.interpreter.stored)

    def copy_savepoint(self) -> None:
        """Copy the next file of a savepoint."""
        self.storage.copy(self.interpreter.stored)

    def deliver(self) -> None:
        """Poll deliveries as the driver does, and hand them to its sinks."""
        progress = self.ask(ShowProgress(self._seen))
        for name, payload in progress.deliveries:
            self._around.sinks[name].deliver(payload)
        self._seen += len(progress.deliveries)
        self.ask(ShowProgress(self._seen))

    def bring_up(self) -> None:
        """Bring up the newest attempt."""
        wanted, self.wanted = self.wanted, None
        if wanted is not None and wanted.attempt == self.core.attempt:
            if wanted.attempt:
                self.counts.restarts += 1
                self.counts.recoveries += wanted.manifest is not None
            self.spawns.clear()
            self._around.deploy(wanted)

    def bring_in(self) -> None:
        """Start the joining workers."""
        wanted = self.spawns.popleft()
        if wanted.attempt == self.core.attempt:
            self._around.spawn(wanted)

    def lose(self) -> SimulatedCoordinator:
        """Lose this coordinator, and return the one that replaces it as soon as the store answers."""
        storage = self._around.storage
        storage.unreachable = False
        terms, newest = storage.take_over(storage.claim())
        storage.discard_unfinished(storage.committed)
        attempt = first_attempt(terms.term)
        manifest, first = (newest, False) if newest is not None else (storage.first, storage.first is not None)
        begin = RestorePoint(
            manifest, first, storage.last, takes_over=True, committed=storage.committed, attempt=attempt, stop=storage.stop,
            settings=ChangedSettings(**storage.settings), code=storage.code,
        )  # fmt: skip
        after = SimulatedCoordinator(self._around, terms, begin)
        after.begin()
        return after

    def start_again(self, parallelism: int | None) -> SimulatedCoordinator:
        """Start the program again, perhaps with another number of workers, and return the coordinator of that start."""
        storage = self._around.storage
        storage.unreachable = False
        terms, newest = storage.take_over(storage.claim(new_start=True))
        storage.discard_unfinished(NO_CHECKPOINT)
        storage.committed = NO_CHECKPOINT
        storage.code = None
        storage.settings = {}
        attempt, reached = first_attempt(terms.term), storage.reached(terms)
        begin = RestorePoint(newest, last=storage.last, resumes=True, committed=reached, attempt=attempt)
        around = self._around if parallelism is None else replace(self._around, plan=self._around.replan(parallelism))
        after = SimulatedCoordinator(around, terms, begin)
        after.begin()
        return after

    @property
    def may_start_again(self) -> bool:
        """True if another start of the program would continue this run: there is a checkpoint, or nothing can have been committed."""
        storage = self._around.storage
        return storage.empty or storage.newest(self._terms) is not None

    def leave_alone(self, workers: dict[WorkerId, SimulatedWorker]) -> None:
        """Continue with these workers after being declared lost; no others can be started."""
        self.workers, self._alone, self.wanted = workers, True, None
        self.spawns.clear()

    def tell(self, worker: WorkerId, command: Command) -> None:
        if worker in self.workers:
            self.workers[worker].tell(command)

    def deploy(self, wanted: Deploy) -> None:
        self.wanted = None if self._alone else wanted

    def spawn(self, wanted: Spawn) -> None:
        if not self._alone:
            self.spawns.append(wanted)

    def retire(self, workers: tuple[WorkerId, ...]) -> None:
        self.spawns = deque(spawn for spawn in self.spawns if not set(spawn.workers) & set(workers))
        if not self._alone:
            self._around.retire(workers)

    @property
    def nodes(self) -> SimulatedNodes:
        """The nodes of the job's cluster."""
        return self._around.nodes

    def use_nodes(self, avoid: frozenset[str], prefer: frozenset[str]) -> None:
        if not self._alone:
            self._around.nodes.use(avoid, prefer)

    def reserve(self, workers: Sequence[WorkerId], *, hurry: bool) -> None:
        """Note the workers for which spares start. In a hurry they need no time, which a simulation could not shorten."""
        self.reserved_for, self.reserved = tuple(workers), hurry or not workers

    def ask_for_room(self, nodes: int) -> None:
        """Do nothing: there is room."""

    def leave_node(self) -> None:
        """Note that this coordinator's process ends, and a later one begins elsewhere."""
        self.leaves = True

    def long_calls(self) -> dict[WorkerId, LongCall]:
        return {name: worker.long_call for name, worker in self.workers.items() if worker.long_call is not None}

    def view(self, *, oldest: float | None) -> ClusterView:
        view = self._around.nodes.view()
        return view if self.reserved else replace(view, reserved=False)
