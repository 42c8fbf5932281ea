"""A job of many workers without processes: its coordinator's state machine, and a crowd that answers every command at once.

Reports are packed as workers pack them, and unpacked in the time that counts; commands are packed in it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import evenflow as ef

from ...actors.processes.packed_call import pack_call, unpack_call
from ...engine.plan.physical import Plan
from ...engine.protocol.effects import Prepared
from ...engine.protocol.handover_step import Arrived, HandoverStep
from ...engine.protocol.ids import Attempt, StepVersion, WorkerId, worker_id
from ...scheduler.job.core import JobCore
from ...scheduler.protocol.effects import Commit, Deploy, Effect, RestoreSinks, Save, Spawn, Tell
from ...scheduler.protocol.messages import Announce, Announced, Attach, Attached, BeginCheckpoint, Command, Detach, Report, Switch
from ...scheduler.protocol.requests import AnyRequest, Request
from ...scheduler.protocol.storage_answers import Committed, ManifestSaved, SinksRestored
from ..harness.sinks import DiscardSink

KEY_GROUPS = 32_768
KEYED = "keyed"
TICKS = 20
"""Ticks of a coordinator in a second."""

A = TypeVar("A")


def wide_config(workers: int, key_groups: int = KEY_GROUPS) -> ef.JobConfig:
    """Return settings by which the job saves its state, though nothing is written, and balances automatically."""
    checkpoint, balance = ef.CheckpointConfig("/nowhere", interval=None), ef.BalanceConfig("hotspot")
    return ef.JobConfig(parallelism=workers, key_groups=key_groups, checkpoint=checkpoint, balance=balance)


def wide_plan(sources: int, config: ef.JobConfig) -> Plan:
    """Return the plan of a running count by key behind `sources` readers."""
    flow = ef.Dataflow("wide")
    read = flow.read(ef.generate(keys=1_000_000)).parallelism(sources)
    read.key_by("key").aggregate(n=ef.count()).named(KEYED).write(DiscardSink())
    return flow.plan(config=config)


class Crowd:
    """The coordinator of a job whose workers answer at once.

    `seconds`: processor time of the coordinator so far; `sent`, `received`: bytes. `now`: seconds since the epoch.
    """

    def __init__(self, workers: int, sources: int, key_groups: int = KEY_GROUPS) -> None:
        config = wide_config(workers, key_groups)
        self.core = JobCore(wide_plan(sources, config), config)
        self.now, self.seconds, self.sent, self.received = 1_700_000_000.0, 0.0, 0, 0
        self._numbers: dict[WorkerId, int] = {}
        self._waiting = deque[Effect]()
        self._told: dict[tuple[type[Command], int], int] = {}
        self._steps: dict[StepVersion, HandoverStep] = {}
        self.do(self.core.begin, self.now)
        self.run()

    @property
    def workers(self) -> tuple[WorkerId, ...]:
        """The workers of the keyed operator."""
        return self.core.plan.stage_of(KEYED).workers

    @property
    def sources(self) -> tuple[WorkerId, ...]:
        return self.core.plan.stages[0].workers

    def do(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Hand an event to the coordinator; its time counts, and that of packing its commands."""
        begun = time.thread_time()
        answer = call(*arguments)
        effects = self.core.effects()
        for effect in effects:
            if isinstance(effect, Tell):
                self.sent += len(pack_call(effect.command))
        self.seconds += time.thread_time() - begun
        self._waiting += effects
        return answer

    def ask(self, request: Request[A]) -> A:
        """Answer a request, and let the crowd answer the commands that it leads to."""
        answer = cast(A, self.do(self.core.answer, cast(AnyRequest, request), self.now))
        self.run()
        return answer

    def report(self, worker: WorkerId, report: Report) -> None:
        """Deliver a worker's report as it comes from the wire."""
        number = self._numbers[worker] = self._numbers.get(worker, -1) + 1
        packed = pack_call(worker, self.core.attempt, number, report)
        self.received += len(packed)
        self.do(self._deliver, packed)

    def tick(self, seconds: float = 1 / TICKS) -> None:
        """Let time pass."""
        self.now += seconds
        self.do(self.core.tick, self.now)
        self.run()

    def until(self, done: Callable[[], bool]) -> None:
        """Let time pass until `done()`."""
        while not done():
            self.tick()

    def settle(self) -> None:
        """Let time pass until no change is under way."""
        self.until(lambda: not self.core.busy)

    def run(self) -> None:
        """Answer until no command is left."""
        while self._waiting:
            self._answer(self._waiting.popleft())

    def _deliver(self, packed: bytes) -> None:
        worker, attempt, _, report = unpack_call(packed)
        if attempt == self.core.attempt:
            self.core.report(worker, report, self.now)

    def _answer(self, effect: Effect) -> None:
        core = self.core
        match effect:
            case Tell(worker, command):
                for name, report in self._reports(worker, command):
                    self.report(name, report)
            case Deploy(attempt, plan):
                self._start(tuple(task.name for task in plan.tasks), attempt)
            case Spawn(attempt, _, joining):
                self._start(joining, attempt)
            case RestoreSinks(attempt):
                self.do(core.stored, SinksRestored(attempt), self.now)
            case Save(manifest):
                self.do(core.stored, ManifestSaved(manifest.checkpoint), self.now)
            case Commit(checkpoint):
                self.do(core.stored, Committed(checkpoint), self.now)

    def _start(self, workers: tuple[WorkerId, ...], attempt: Attempt) -> None:
        for worker in workers:
            self.do(self.core.ready, worker, attempt, self.now)

    def _reports(self, worker: WorkerId, command: Command) -> Iterator[tuple[WorkerId, Report]]:
        match command:
            case BeginCheckpoint(checkpoint):
                yield worker, Prepared(checkpoint, {})
                if self._all_told(command):
                    yield from ((name, Prepared(checkpoint, {})) for name in self.workers)
            case Announce(number, _, steps):
                if worker in self.sources:  # which get all moves
                    self._steps = {step.version: step for step in steps}
                yield worker, Announced(number)
            case Switch(version):
                if self._all_told(command):
                    for move in self._steps[version].moves:
                        yield worker_id(KEYED, move.target), Arrived(version, move.source, len(move.groups), 100 * len(move.groups))
            case Attach(token):
                yield worker, Attached(token)
            case Detach(token) if token >= 0:
                yield worker, Attached(token)
            case _:
                pass

    def _all_told(self, command: BeginCheckpoint | Switch) -> bool:
        """Note that a source has got a command; return True if it was the last of them."""
        what = type(command), command.checkpoint if isinstance(command, BeginCheckpoint) else command.version
        self._told[what] = self._told.get(what, 0) + 1
        return self._told[what] == len(self.sources)
