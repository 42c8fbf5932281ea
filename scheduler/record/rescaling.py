"""A rescale: the phases in which an operator gets another number of workers while the stream runs, without I/O.

Joining workers start first, while the stream continues. Then, while no checkpoint and no migration is under way, the workers
downstream accept the new channels before those upstream open them, and learn the current event time; so a joining worker can't
send a late record. A leaving worker owns no keys any more; its inputs end in band, it sends its remaining output, and ends.

The splits of a source are reassigned: all its workers stop reading, and the workers after it hold event time until every worker
of the source has sent its own again. Then each reads on from its new position. No other worker waits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from ...engine.operators.rows.read import Read
from ...engine.plan.channel_spec import ChannelSpec
from ...engine.plan.physical import Plan
from ...engine.plan.rescale import Rescale
from ...engine.protocol.effects import Rewound
from ...engine.protocol.ids import ChannelId, WorkerId
from ...engine.source import Source
from ..protocol.messages import Attach, Attached, Commands, Detach, ExpectRewind, PauseSource, ResumeSource, SourcePaused, TakeSource
from .operation import Operation
from .restoring.restore import earliest_of


class RescaleState(StrEnum):
    """The state of a rescale; the last two are final. `ended early`: the stream ended, or the new workers did not start."""

    RUNNING = "running"
    DONE = "done"
    ENDED_EARLY = "ended early"


class RescalePhase(StrEnum):
    """The event that a rescale waits for."""

    STARTING = "starting workers"
    TURN = "waiting for its turn"
    RECEIVERS = "opening channels downstream"
    SENDERS = "opening channels upstream"
    PAUSING = "pausing the source"
    EXPECTING = "announcing new event times"
    REWINDING = "waiting for new event times"
    LEAVING = "workers leave"
    OVER = "over"


@dataclass(slots=True)
class Rescaling(Operation[RescaleState]):
    """A change of the number of workers of one stage.

    `before`: the plan before the change. `token`: numbers the requests to workers. `too_late`: True if a worker that should take records
    has finished.
    """

    before: Plan
    rescale: Rescale
    token: int
    phase: RescalePhase = RescalePhase.STARTING
    waiting: set[WorkerId] = field(default_factory=set)
    rewinding: set[WorkerId] = field(default_factory=set)
    paused: dict[WorkerId, SourcePaused] = field(default_factory=dict)
    too_late: bool = False

    @property
    def joined(self) -> bool:
        """True if the joining workers belong to the job from now on."""
        phases = (RescalePhase.SENDERS, RescalePhase.PAUSING, RescalePhase.EXPECTING, RescalePhase.REWINDING)
        return bool(self.rescale.joining) and not self.too_late and (self.phase in phases or self.state is RescaleState.DONE)

    @property
    def exclusive(self) -> bool:
        """True if no checkpoint and no migration may begin now."""
        return self.phase not in (RescalePhase.STARTING, RescalePhase.TURN, RescalePhase.OVER)

    @property
    def source(self) -> Source | None:
        """The source that the operator reads, if it is one."""
        head = self._stage_chain[0].operator
        return head.source if isinstance(head, Read) else None

    @property
    def _stage_chain(self) -> Any:
        return next(stage.chain for stage in self.before.stages if stage.name == self.rescale.stage)

    def advance(
        self, *, ready: Collection[WorkerId], finished: frozenset[WorkerId], running: bool, free: bool, now: float
    ) -> Commands | None:
        """Return the next commands, None while answers are missing.

        `ready`: workers that have started. `running`: the job runs and is not asked to stop; `free`: nothing else is under way in
        it.
        """
        if self.phase is RescalePhase.STARTING:
            if not running:
                self.end(RescaleState.ENDED_EARLY, now)
            elif not set(ready).issuperset(self.rescale.joining):
                return None
            else:
                self.phase = RescalePhase.TURN
            return []
        if self.phase is RescalePhase.TURN:
            if running and not free:
                return None
            return self.receivers() if running else self._ended_early(now)
        if self.waiting - finished if self.phase is RescalePhase.LEAVING else self.waiting:
            return None
        return self._advance(finished, now)

    def _advance(self, finished: frozenset[WorkerId], now: float) -> Commands | None:
        """Enter the next phase, since all answers of this one have arrived."""
        if self.phase is RescalePhase.RECEIVERS:
            return self._abandon(now) if self.too_late else self.senders()
        if self.phase is RescalePhase.SENDERS and self.source is None:
            return self.detach() if self.rescale.leaving else self._done(now)
        if self.phase is RescalePhase.REWINDING and not self.rewinding - finished and self.rescale.leaving:
            self.phase = RescalePhase.LEAVING
            return []
        if self.phase is RescalePhase.LEAVING:
            return self._left(finished, now)
        return self._share_out(finished, now)

    def _share_out(self, finished: frozenset[WorkerId], now: float) -> Commands | None:
        """Enter the next phase of a source."""
        if self.phase is RescalePhase.SENDERS:
            return self.pause(finished)
        if self.phase is RescalePhase.PAUSING:
            return self.expect() if self.may_share else self._leave_unshared(now)
        if self.phase is RescalePhase.EXPECTING:
            return self.take()
        return None if self.rewinding - finished else self._done(now)

    def _leave_unshared(self, now: float) -> Commands:
        if self.rescale.replaces:  # the new workers end their channels before they leave
            self.phase, self.too_late = RescalePhase.LEAVING, True
            return self.unshared()
        return [*self.unshared(), *(self._ended_early(now) if self.rescale.leaving else self._done(now))]

    def _left(self, finished: frozenset[WorkerId], now: float) -> Commands | None:
        """End the rescale once the leaving workers have sent all their output; return None before that."""
        if not finished.issuperset(self.rescale.joining if self.too_late else self.rescale.leaving):
            return None
        return self._ended_early(now) if self.too_late else [*self.forget(), *self._done(now)]

    def _abandon(self, now: float) -> Commands:
        """Abandon the rescale: a worker downstream has sent its last element, so it can take no more. The new channels end at
        once.
        """
        if self.rescale.joining:
            self.phase = RescalePhase.LEAVING
            return [(name, TakeSource(0, 1, None)) for name in self.rescale.joining]
        commands = [(name, replace(attach, unused=True)) for name, attach in self.senders() if isinstance(attach, Attach)]
        return [*commands, *self._ended_early(now)]

    def _done(self, now: float) -> Commands:
        self.end(RescaleState.DONE, now)
        return []

    def _ended_early(self, now: float) -> Commands:
        self.end(RescaleState.ENDED_EARLY, now)
        return []

    def note(self, worker: WorkerId, report: Attached | SourcePaused | Rewound) -> None:
        """Note a worker's answer."""
        if isinstance(report, Rewound):
            self.rewinding.discard(worker)
        elif report.token == self.token:
            self.waiting.discard(worker)
            if isinstance(report, SourcePaused):
                self.paused[worker] = report
            elif report.finished and self.phase is RescalePhase.RECEIVERS:
                self.too_late |= any(c.receiver == worker for c in self.rescale.opened)

    def receivers(self) -> Commands:
        """Return the commands for the workers downstream of joining workers."""
        self._ask(RescalePhase.RECEIVERS)
        new, accepted = set(self.rescale.joining), _by_receiver(self.rescale.opened)
        behind = self.rescale.replaces if self.source is None else {}  # a source's workers tell where they continue
        commands: Commands = []
        for name in (task.name for task in self.before.tasks):
            if name not in new and name in accepted:
                inputs = tuple((c.id, behind.get(c.id)) for c in accepted[name])
                commands.append((name, Attach(self.token, accept=tuple(accepted[name]), inputs=inputs)))
        return self._expect(commands)

    def senders(self) -> Commands:
        """Return the commands for workers that feed joining workers, or another worker because theirs leaves."""
        self._ask(RescalePhase.SENDERS)
        new, connected = set(self.rescale.joining), _by_sender(self.rescale.opened)
        commands: Commands = []
        for task in self.rescale.plan.tasks:
            connect = tuple(connected.get(task.name, ()))
            if task.name not in new and connect:
                ids = {c.id for c in connect}
                exchanges = enumerate(task.exchanges)
                outputs = tuple((i, at, id_) for i, exchange in exchanges for at, id_ in enumerate(exchange.channels) if id_ in ids)
                commands.append((task.name, Attach(self.token, connect=connect, outputs=outputs)))
        return self._expect(commands)

    def pause(self, finished: Iterable[WorkerId]) -> Commands:
        """Return the commands that pause all reading workers of the source."""
        self._ask(RescalePhase.PAUSING)
        names = [task.name for task in self.before.tasks if task.stage == self.rescale.stage]
        return self._expect([(name, PauseSource(self.token)) for name in names if name not in set(finished)])

    def expect(self) -> Commands:
        """Return the commands for the workers after the source."""
        self._ask(RescalePhase.EXPECTING)
        reading = {*self.paused, *self.rescale.joining}
        channels: dict[WorkerId, list[ChannelId]] = {}
        for channel in (*self.rescale.plan.channels, *self.rescale.closed):
            if channel.sender in reading:
                channels.setdefault(channel.receiver, []).append(channel.id)
        self.rewinding = set(channels)
        return self._expect([(name, ExpectRewind(self.token, tuple(ids))) for name, ids in channels.items()])

    def take(self) -> Commands:
        """Reassign the source's splits; if one of its workers has read everything meanwhile, the others continue unchanged."""
        self.phase = RescalePhase.REWINDING
        source, stage = self.source, self.rescale.stage
        before, after = self.before.stage_of(stage).workers, self.rescale.plan.stage_of(stage).workers
        assert source is not None
        positions = [self.paused[name].position for name in before]
        if not self.rescale.replaces:
            positions = source.share_out(positions, len(after))
        times = earliest_of([self.paused[name].own_times for name in before])
        count = len(after)
        commands: Commands = [
            (name, TakeSource(i, count, position, times)) for i, (name, position) in enumerate(zip(after, positions, strict=True))
        ]
        return [*commands, *((name, TakeSource(0, count, None)) for name in self.rescale.leaving)]

    @property
    def may_share(self) -> bool:
        """True if every worker of the source is still reading."""
        stage = self.rescale.stage
        names = [task.name for task in self.before.tasks if task.stage == stage]
        return all(name in self.paused and not self.paused[name].finished for name in names)

    def unshared(self) -> Commands:
        """Resume the old workers of the source unchanged; joining workers have nothing to read."""
        self.rewinding = set()
        commands: Commands = [(name, ResumeSource()) for name, paused in self.paused.items() if not paused.finished]
        return [*commands, *((name, TakeSource(0, 1, None)) for name in self.rescale.joining)]

    def detach(self) -> Commands:
        """Return the commands for the workers that feed the leaving ones."""
        self._ask(RescalePhase.LEAVING)
        gone = set(self.rescale.leaving)
        outputs: dict[WorkerId, list[ChannelId]] = {}
        for channel in self.rescale.closed:
            if channel.receiver in gone and channel.sender not in gone:
                outputs.setdefault(channel.sender, []).append(channel.id)
        return self._expect([(name, Detach(self.token, tuple(ids))) for name, ids in outputs.items()])

    def forget(self) -> Commands:
        """Return the commands for the other workers of a keyed stage, which may have exchanged state with those that have left."""
        leaving = set(self.rescale.leaving)
        gone = Detach(-1, peers=tuple(task.number for task in self.before.tasks if task.name in leaving))
        keyed = self.before.stage_of(self.rescale.stage).is_keyed
        return [(task.name, gone) for task in self.rescale.plan.tasks if keyed and task.stage == self.rescale.stage]

    def end(self, state: RescaleState, now: float, problem: str | None = None) -> None:
        """End the rescale in any phase."""
        self.phase = RescalePhase.OVER
        Operation.end(self, state, now, problem)

    def spawned(self) -> Plan:
        """Return the plan with which joining workers are deployed."""
        new = set(self.rescale.joining)
        tasks = tuple(replace(task, joining=True) if task.name in new else task for task in self.rescale.plan.tasks)
        return replace(self.rescale.plan, tasks=tasks)

    def _ask(self, phase: RescalePhase) -> None:
        self.phase, self.token = phase, self.token + 1

    def _expect(self, commands: Commands) -> Commands:
        self.waiting = {name for name, _ in commands}
        return commands


def _by_receiver(channels: Iterable[ChannelSpec]) -> dict[WorkerId, list[ChannelSpec]]:
    found: dict[WorkerId, list[ChannelSpec]] = {}
    for channel in channels:
        found.setdefault(channel.receiver, []).append(channel)
    return found


def _by_sender(channels: Iterable[ChannelSpec]) -> dict[WorkerId, list[ChannelSpec]]:
    found: dict[WorkerId, list[ChannelSpec]] = {}
    for channel in channels:
        found.setdefault(channel.sender, []).append(channel)
    return found
