"""The coordinator of the simulation: the job's state machine, and the commits that it asks for, carried out one by one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from ..engine.errors import EvenflowError, JobError
from ..engine.sink import Sink
from ..scheduler.job import Commit, Effect, JobCore, Tell
from ..scheduler.messages import Failed
from .network import SimulationError
from .workers import Ready, SimulatedReport, Worker


class Coordinator:
    """`sinks` by operator name. Commits and deliveries wait until the schedule picks them; both keep their order."""

    def __init__(self, core: JobCore, workers: Mapping[str, Worker], sinks: Mapping[str, Sink]) -> None:
        self.core = core
        self.commits: deque[Commit] = deque()
        self.deliveries: deque[tuple[str, Any]] = deque()
        self._workers, self._sinks = workers, sinks
        self._committed = 0

    @property
    def over(self) -> bool:
        """Whether the job has ended and everything that it committed is delivered."""
        return self.core.state.final and not self.commits and not self.deliveries

    def receive(self, worker: str, reports: Iterable[SimulatedReport], now: float) -> None:
        """Reports of a worker, in the order in which it sent them."""
        for report in reports:
            if isinstance(report, Ready):
                self.carry_out(self.core.ready(worker, now))
            elif isinstance(report, Failed):
                error = report.error
                self.carry_out(self.core.failed(error if isinstance(error, EvenflowError) else JobError(str(error))))
            else:
                self.carry_out(self.core.report(worker, report, now))

    def tick(self, now: float) -> None:
        """Time has passed."""
        self.carry_out(self.core.tick(now))

    def commit(self) -> None:
        """Carry out the oldest commit. Raises SimulationError unless its checkpoint is later than those before it."""
        commit = self.commits.popleft()
        if commit.checkpoint <= self._committed:
            raise SimulationError(f"checkpoint {commit.checkpoint} is committed behind checkpoint {self._committed}")
        self._committed = commit.checkpoint
        for name, sink in self._sinks.items():
            self.deliveries.extend((name, payload) for payload in sink.commit(commit.checkpoint, commit.committables.get(name, [])))

    def deliver(self) -> None:
        """Hand the oldest payload to its sink."""
        name, payload = self.deliveries.popleft()
        self._sinks[name].deliver(payload)

    def carry_out(self, effects: Iterable[Effect]) -> None:
        """Send what the job's state machine wants to be sent, and note its commits."""
        for effect in effects:
            if isinstance(effect, Tell):
                self._workers[effect.worker].commands.post(effect.command)
            elif isinstance(effect, Commit):
                self.commits.append(effect)
