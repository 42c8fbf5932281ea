"""The coordinator of the simulation: the job's state machine, and what it asks for, carried out one by one."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..engine.errors import JobError, JobFailedError
from ..engine.plan.physical import Plan
from ..engine.sink import Sink
from ..scheduler.job import JobCore
from ..scheduler.job_effects import Commit, Discard, Effect, Redeploy, Retire, Save, Spawn, Tell
from ..scheduler.job_settings import JobSettings
from ..scheduler.manifest import Manifest
from ..scheduler.messages import Failed
from ..scheduler.restore import plan_at
from ..scheduler.terms import Terms, first_attempt
from ..state.errors import CorruptCheckpointError, EvenflowError
from .ledger import Ledger
from .network import SimulationError
from .storage import Storage
from .workers import Ready, SimulatedReport, Worker


@dataclass(frozen=True, slots=True)
class Retract:
    """What was committed behind checkpoint `after` is to be taken back."""

    after: int


class Coordinator:
    """`sinks` by operator name. Commits and deliveries wait until the schedule picks them; both keep their order.

    `deploy` brings an attempt up: it makes new workers, with their channels and mailboxes.
    """

    def __init__(
        self,
        plan: Plan,
        settings: JobSettings,
        sinks: Mapping[str, Sink],
        storage: Storage,
        ledger: Ledger,
        deploy: Callable[[Redeploy], Mapping[str, Worker]],
        spawn: Callable[[Spawn], None],
        retire: Callable[[Retire], None],
    ) -> None:
        self._first, self._ledger, self._spawn, self._retire = plan, ledger, spawn, retire
        self.spawns: deque[Spawn] = deque()
        self.core = JobCore(plan, settings)
        self.commits: deque[Commit | Retract] = deque()
        self.deliveries: deque[tuple[str, Any]] = deque()
        self.saves: deque[Save] = deque()
        self.wanted: Redeploy | None = None
        self.restarts = 0
        self.recoveries = 0
        """Restarts that went back to a checkpoint, not to the very beginning."""
        self.retractions = 0
        """Restarts that went back behind a checkpoint that may have been committed."""
        self._settings, self._sinks, self.storage, self._deploy = settings, sinks, storage, deploy
        self._terms = Terms()
        self.superseded = False
        """Whether it has found that another coordinator has begun: it is gone then."""
        self._may_write = False
        self._written: Manifest | None = None
        self._committed = 0
        self._remembered = 0
        """The newest checkpoint that may have been committed: what the cluster knows of a coordinator that is lost."""
        self._workers = deploy(Redeploy(0, plan, None, 0.0))

    @property
    def over(self) -> bool:
        """Whether the job has ended and everything that it committed is delivered."""
        return self.core.state.final and not self.commits and not self.deliveries

    def receive(self, worker: str, attempt: int, reports: Iterable[SimulatedReport], now: float) -> None:
        """Reports of a worker, in the order in which it sent them; those of an attempt that is over are dropped."""
        for report in reports:
            if self.wanted is not None or attempt != self.core.attempt:
                return
            if isinstance(report, Ready):
                self.carry_out(self.core.ready(worker, now))
            elif isinstance(report, Failed) and isinstance(report.error, CorruptCheckpointError):
                number, older = report.error.checkpoint, self.storage.newest(self._terms, report.error.checkpoint)
                self.carry_out(self.core.unreadable(number, report.error.problem, older, now))
            elif isinstance(report, Failed):
                error = report.error
                self.carry_out(self.core.failed(error if isinstance(error, EvenflowError) else JobError(str(error)), now))
            else:
                self.carry_out(self.core.report(worker, report, now))

    def tick(self, now: float) -> None:
        """Time has passed."""
        self.carry_out(self.core.tick(now))

    def commit(self) -> None:
        """Carry out the oldest commit or retraction. Raises SimulationError if its checkpoint is earlier than one before it."""
        commit = self.commits.popleft()
        if isinstance(commit, Retract):
            self._committed = commit.after
            self._ledger.take_back(commit.after)
            self.deliveries.extend((name, payload) for name, sink in self._sinks.items() for payload in sink.retract(commit.after))
            return
        if commit.checkpoint < self._committed:
            raise SimulationError(f"checkpoint {commit.checkpoint} is committed behind checkpoint {self._committed}")
        self._committed = commit.checkpoint
        self._remembered = max(self._remembered, commit.checkpoint)
        self._ledger.commit(commit.checkpoint, commit.committables)
        for name, sink in self._sinks.items():
            self.deliveries.extend((name, payload) for payload in sink.commit(commit.checkpoint, commit.committables.get(name, [])))

    def deliver(self) -> None:
        """Hand the oldest payload to its sink."""
        name, payload = self.deliveries.popleft()
        self._sinks[name].deliver(payload)

    @property
    def may_save(self) -> bool:
        """Whether a manifest is to be written: behind all earlier commits, as the real coordinator does one thing after another."""
        return bool(self.saves) and not self.commits

    @property
    def writing(self) -> bool:
        """Whether it is busy with a manifest: it does nothing else until that is written, but may be lost."""
        return self._may_write or self._written is not None

    def save(self, now: float) -> None:
        """Write the manifest: a step is to see that no other coordinator has begun, the next to write it, the last to see that again.

        Between two of them the coordinator may be lost, or another may begin.
        """
        if self._written is not None:
            checkpoint, self._written = self.saves.popleft().manifest.checkpoint, None
            if self._in_charge():
                self.storage.sweep(self._terms)
                self.carry_out(self.core.saved(checkpoint, None, now))
        elif not self._may_write:
            self._may_write = self._in_charge()
        else:
            self._may_write = False
            manifest = replace(self.saves[0].manifest, undelivered=tuple(self.deliveries))
            try:
                self.storage.complete(manifest)
            except OSError as error:
                self.saves.popleft()
                self.carry_out(self.core.saved(manifest.checkpoint, str(error), now))
            else:
                self._written = manifest

    def _in_charge(self) -> bool:
        self.superseded = self.superseded or self.storage.claimed(self._terms.term + 1)
        return not self.superseded

    def spawn(self) -> None:
        """Start the workers that are to join."""
        self._spawn(self.spawns.popleft())

    def redeploy(self, now: float) -> None:
        """Bring up the newest attempt."""
        wanted, self.wanted = self.wanted, None
        if wanted is not None and self._in_charge():
            self.restarts += 1
            if wanted.retracts:
                self.retractions += 1
                after = wanted.manifest.checkpoint if wanted.manifest is not None else 0
                try:
                    self.storage.declare_void(after)
                except OSError as error:
                    self.carry_out(self.core.failed(JobFailedError(str(error)), now))
                    return
                self.commits.append(Retract(after))
            if wanted.commit is not None:
                self.recoveries += 1
                self.commits.append(wanted.commit)
            self._workers = self._deploy(wanted)

    def lose(self, now: float) -> None:
        """The coordinator's process is lost, with all that it knew, and made anew."""
        if self.core.state.final:
            return
        self.commits.clear()
        self.saves.clear()
        self._written, self._may_write = None, False
        self._terms, newest = self.storage.take_over(self.storage.claim())
        self.storage.discard_unfinished(self._remembered)
        self.spawns.clear()
        plan = self._first if newest is None else plan_at(newest, self._first)
        self.core = JobCore(plan, self._settings, newest, self._remembered)
        self.core.attempt = first_attempt(self._terms.term)
        self.core.checkpoints.last = max(self.storage.last, self.core.committed)
        self.deliveries = deque(newest.undelivered if newest is not None else ())
        self.carry_out(self.core.redeploy())

    def left_behind(self, workers: dict[str, Worker]) -> Coordinator:
        """The same as it is now, with these workers, for one that is taken for lost and goes on: nobody brings up anything for it."""
        left = copy.copy(self)
        left.commits, left.saves, left.spawns, left.deliveries = deque(self.commits), deque(self.saves), deque(self.spawns), deque()
        left.bring_up(workers, lambda _: {}, lambda _: None, lambda _: None)
        return left

    def bring_up(
        self,
        workers: Mapping[str, Worker],
        deploy: Callable[[Redeploy], Mapping[str, Worker]],
        spawn: Callable[[Spawn], None],
        retire: Callable[[Retire], None],
    ) -> None:
        """Have these workers, and these ways to others."""
        self._workers, self._deploy, self._spawn, self._retire = workers, deploy, spawn, retire

    def carry_out(self, effects: Iterable[Effect]) -> None:
        """Send what the job's state machine wants to be sent, and note its commits."""
        for effect in effects:
            if isinstance(effect, Tell):
                if effect.worker in self._workers:
                    self._workers[effect.worker].tell(effect.command)
            elif isinstance(effect, Commit):
                self.commits.append(effect)
            elif isinstance(effect, Save):
                self.saves.append(effect)
            elif isinstance(effect, Discard):
                self.storage.discard(effect.checkpoint)
            elif isinstance(effect, Spawn):
                self.spawns.append(effect)
            elif isinstance(effect, Retire):
                self.spawns = deque(spawn for spawn in self.spawns if not set(spawn.workers) & set(effect.workers))
                self._retire(effect)
            elif isinstance(effect, Redeploy):
                self.spawns.clear()
                self.saves.clear()
                self._written, self._may_write = None, False
                self.wanted = effect
