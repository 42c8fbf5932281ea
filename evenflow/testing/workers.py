"""A worker of the simulation: the task that runs on Ray too, with a reader that is polled when the schedule says so."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..engine.batch import Batch
from ..engine.operators.aggregate_windows import AggregateWindowsInstance
from ..engine.operators.keyed import KeyedInstance
from ..engine.operators.read import Read
from ..engine.plan.task_spec import TaskSpec
from ..engine.protocol.effects import Consumed, Effect, Finished, Latency, Prepared, Rewound, Saved, Switched
from ..engine.protocol.elements import FetchReply, TransferEnd, TransferStart
from ..engine.protocol.exchange import Sent
from ..engine.protocol.handover import Arrived
from ..engine.protocol.routing import Move, RoutingTable
from ..engine.snapshots.chain import resolved
from ..engine.source import SourceReader
from ..engine.task import TaskCore
from ..scheduler.messages import (
    Announce,
    Announced,
    Attach,
    Attached,
    BeginCheckpoint,
    CheckpointFailed,
    Command,
    Detach,
    ExpectRewind,
    Failed,
    PauseSource,
    Rescaling,
    Resume,
    ResumeSource,
    Shutdown,
    SourcePaused,
    StopSource,
    Switch,
    TakeSource,
)
from ..scheduler.restore import RestoredTask
from ..state.errors import CorruptCheckpointError, CorruptStateError, EvenflowError
from ..state.files import StateFile
from .network import Channel, Mailbox
from .storage import Storage


@dataclass(frozen=True, slots=True)
class Ready:
    """From a worker: its task has started."""


SimulatedReport = (
    Ready | Attached | SourcePaused | Rewound | Prepared | CheckpointFailed | Finished | Failed | Announced | Switched | Arrived
)


class Worker:
    """`inputs` and `outputs` by channel id; with `credit` batches under way on an output the worker waits.

    `choices`: what it may do next, None once something has touched it.
    """

    def __init__(
        self,
        spec: TaskSpec,
        channels: dict[int, Channel],
        credit: int,
        storage: Storage,
        attempt: int,
        restored: RestoredTask | None,
        touched: set[str],
    ) -> None:
        self.spec, self.name = spec, spec.name
        self._storage, self.attempt, self._restored = storage, attempt, restored
        self._chunks: list[Batch] = []
        self._unwritten: deque[tuple[Prepared, list[Batch]]] = deque()
        self.dead = False
        self.choices: list[Any] | None = None
        self.known: dict[str | int, Any] = {}
        """Choices that were made before, by kind, and by channel."""
        self._channels, self._touched = channels, touched
        self._paused = False
        self.task = TaskCore(spec)
        self.inputs = {id_: channels[id_] for id_ in spec.inputs}
        self.outputs = {id_: channels[id_] for exchange in spec.exchanges for id_ in exchange.channels}
        self.state_inputs = {peer.incoming: channels[peer.incoming] for peer in spec.peers}
        self.state_outputs = {peer.outgoing: channels[peer.outgoing] for peer in spec.peers}
        self._to_peers = {peer.index: peer.outgoing for peer in spec.peers}
        self.commands: Mailbox[Command] = Mailbox()
        self.reports: Mailbox[SimulatedReport] = Mailbox()
        self.started = False
        self.over = False
        self._credit = credit
        self._reader: SourceReader | None = None

    @property
    def may_take(self) -> bool:
        """Whether it may process something: it runs, is not paused, and has credit on every output."""
        return self.started and not self.over and not self.task.paused and self._has_credit

    @property
    def _has_credit(self) -> bool:
        credit = self._credit
        for outputs in (self.outputs, self.state_outputs):
            for channel in outputs.values():
                if channel.batches >= credit:
                    return False
        return True

    @property
    def may_give(self) -> bool:
        """Whether there is state to be given away in the background."""
        return self.started and not self.over and self.task.giving

    @property
    def may_poll(self) -> bool:
        """Whether it is a source that may be polled."""
        return self._reader is not None and self.may_take and not self._paused

    def open(self, now: float) -> None:
        """Start the task."""
        self.task.open()
        head = self.spec.chain[0].operator
        if isinstance(head, Read) and not self.spec.joining:
            self._reader = head.source.reader(self.spec.index, self.spec.parallelism)
        if self._restored is not None:
            try:
                self._restore(self._restored)
            except CorruptStateError as error:
                self._fail(CorruptCheckpointError(self.name, self._restored.checkpoint, str(error)))
                return
        self.started = True
        self.reports.post(Ready())

    def _restore(self, restored: RestoredTask) -> None:
        self.task.restore(restored.watermark)
        if restored.table is not None:
            for chain in restored.chains:
                for chunk in resolved([batch.rows for batch in self._storage.chunks(file)] for file in reversed(chain)):
                    self.task.install(Batch(chunk), restored.table)
            if restored.goes_on:
                self.task.go_on_from(restored.checkpoint, restored.chains[0])
        if self._reader is not None and restored.position is not None:
            self._reader.seek(restored.position)

    def die(self) -> None:
        """The process is gone; the others don't know yet."""
        self.dead = self.over = True

    @property
    def may_save(self) -> bool:
        """Whether there is state that goes into a checkpoint."""
        return self.started and not self.over and self.task.saving

    def save(self, now: float) -> None:
        """Make a chunk of state for a checkpoint."""
        self._carry_out(self.task.save(now))

    @property
    def may_write(self) -> bool:
        """Whether state for a checkpoint is not written yet."""
        return bool(self._unwritten) and not self.over

    def write(self) -> None:
        """Write what the oldest of such checkpoints needs of it, and report that, or that it can't be written."""
        prepared, chunks = self._unwritten.popleft()
        try:
            self.reports.post(replace(prepared, files=self._files(prepared.checkpoint, chunks)))
        except OSError as error:
            self.reports.post(CheckpointFailed(prepared.checkpoint, str(error), prepared.committables))

    def receive(self, channel: Channel, now: float) -> None:
        """Take the oldest element of an input."""
        try:
            self._carry_out(self.task.receive(channel.spec.id, channel.take(), now))
        except EvenflowError as error:
            self._fail(error)

    def poll(self, max_rows: int, mark: bool, now: float) -> None:
        """Poll the source once, perhaps behind a latency mark."""
        reader = self._reader
        if reader is None:
            return
        try:
            batch = reader.poll(max_rows)
            if mark:
                self._carry_out(self.task.mark(0, now))
            self._carry_out(self.task.polled(batch, reader.watermark(), now))
            if batch is None and reader.finished:
                self._carry_out(self.task.exhausted(now))
        except EvenflowError as error:
            self._fail(error)

    def give(self, now: float) -> None:
        """Give a chunk of state away."""
        self._carry_out(self.task.give(now))

    def flush(self, now: float) -> None:
        """Let the buffers go."""
        self._carry_out(self.task.idle(now))

    def tell(self, command: Command) -> None:
        """Send it a command."""
        self.commands.post(command)
        self.choices = None

    def obey(self, command: Command, now: float) -> None:
        """Carry out a command; one that comes too late for a source is nothing to it."""
        if isinstance(command, Shutdown):
            self.over = True
        elif isinstance(command, (Attach, Detach, ExpectRewind, PauseSource, TakeSource, ResumeSource)):
            self._rescale(command, now)
        elif isinstance(command, Announce):
            self.task.announce(command.stage, command.steps)
            self.reports.post(Announced(command.number))
        elif isinstance(command, Switch) and not self.over:
            self._carry_out(self.task.switch(command.version, now))
        elif isinstance(command, Resume) and not self.over:
            self._carry_out(self.task.resume(now))
        elif self._reader is None or self.over:
            return
        elif isinstance(command, BeginCheckpoint):
            self._carry_out(self.task.barrier(command.checkpoint, now, command.base))
        elif isinstance(command, StopSource):
            self._carry_out(self.task.exhausted(now))

    def _rescale(self, command: Rescaling, now: float) -> None:
        task = self.task
        if isinstance(command, Attach):
            for spec in (*command.accept, *command.connect):
                self._channels.setdefault(spec.id, Channel(spec, self._touched))
            self.inputs.update((id_, self._channels[id_]) for id_ in command.inputs)
            self.outputs.update((id_, self._channels[id_]) for _, id_ in command.outputs)
            self.state_inputs.update((peer.incoming, self._channels[peer.incoming]) for peer in command.peers)
            self.state_outputs.update((peer.outgoing, self._channels[peer.outgoing]) for peer in command.peers)
            self._to_peers.update((peer.index, peer.outgoing) for peer in command.peers)
            self._carry_out(task.attach(command.inputs, command.outputs, command.peers, now))
            self.reports.post(Attached(command.token, task.finished))
        elif isinstance(command, Detach):
            self._carry_out(task.detach(command.outputs, command.peers, now))
            self.outputs = {id_: channel for id_, channel in self.outputs.items() if id_ not in command.outputs}
            for index in command.peers:
                self.state_outputs.pop(self._to_peers.pop(index, -1), None)
            self.reports.post(Attached(command.token))
        elif isinstance(command, ExpectRewind):
            self._carry_out(task.expect_rewind(command.channels))
            self.reports.post(Attached(command.token))
        elif isinstance(command, PauseSource):
            self._paused = True
            self.reports.post(SourcePaused(command.token, self._position(), self.over))
        elif not self.over:
            self._paused = False
            if isinstance(command, TakeSource):
                self._take_source(command, now)

    def _take_source(self, share: TakeSource, now: float) -> None:
        if share.position is None:
            self._carry_out(self.task.exhausted(now))
            return
        source = self.spec.chain[0].operator.source  # type: ignore[attr-defined]  # only a source's worker is told so
        self._reader = source.reader(share.index, share.parallelism)
        self._reader.seek(share.position)
        self._carry_out(self.task.rewind(source.earliest(share.position), now))

    def close(self) -> None:
        """Let go of the reader and the sinks."""
        self.task.close()
        if self._reader is not None:
            self._reader.close()

    def waits_for(self) -> str:
        """What keeps it from going on, for people."""
        if not self.started:
            return "to be started"
        if self.over:
            return "nothing, it is over"
        full = [c.spec.receiver for c in self.outputs.values() if c.batches >= self._credit]
        if full:
            return f"credit from {', '.join(sorted(set(full)))}"
        if self._reader is not None:
            return f"its source, which is {'finished' if self._reader.finished else 'not finished'}"
        waiting = [c.spec.sender for c in self.inputs.values() if not c.elements and not c.ended]
        return f"input from {', '.join(sorted(set(waiting))) or 'nobody'}"

    def leftovers(self) -> list[str]:
        """What a task that has finished must not have any more."""
        held = self.task.held_elements
        panes = [o.context.name for o in self.task.operators if isinstance(o, AggregateWindowsInstance) and o.state]
        return [
            *(["is not finished"] if not self.task.finished else []),
            *(["has rows or signals in its buffers"] if self.task.waits else []),
            *([f"holds back {held} elements"] if held else []),
            *(f"has panes in `{name}`" for name in panes),
            *(f"has {len(c.elements)} elements from {c.spec.sender} before it" for c in self.inputs.values() if _brings_rows(c)),
            *(self.task.handovers.unfinished() if self.task.handovers is not None else []),
            *(f"has not taken the state that {c.spec.sender} gave" for c in self.state_inputs.values() if _brings_state(c)),
        ]

    def misplaced(self, table: RoutingTable) -> bool:
        """Whether it holds state of a key that belongs to another worker by the table that its operator has come to; takes it away."""
        operator, index = self.task.operators[0], self.spec.index
        if not isinstance(operator, KeyedInstance):
            return False
        groups = tuple(np.flatnonzero(table.groups != index).tolist())
        here = tuple(key for key, worker in table.keys.items() if worker == index)
        away = tuple(key for key, worker in table.keys.items() if worker != index)
        return operator.state.depart(Move(index, index, groups, away, here)).next_chunk(1) is not None

    def _carry_out(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Sent):
                (self.outputs.get(effect.channel) or self.state_outputs[effect.channel]).send(effect.element)
            elif isinstance(effect, Consumed):
                (self.inputs.get(effect.channel) or self.state_inputs[effect.channel]).consumed()
            elif isinstance(effect, Saved):
                self._chunks.append(effect.chunk)
            elif isinstance(effect, Prepared):
                self._unwritten.append((replace(effect, position=self._position()), self._chunks))
                self._chunks = []
                while self.may_write and not self._storage.slow:
                    self.write()
            elif isinstance(effect, Finished):
                while self.may_write:
                    self.write()
                self.over = True
                self.reports.post(replace(effect, position=self._position()))
            elif not isinstance(effect, Latency):
                self.reports.post(effect)

    def _files(self, checkpoint: int, chunks: list[Batch]) -> tuple[StateFile, ...]:
        return (self._storage.put(checkpoint, f"{self.name} at {checkpoint} in {self.attempt}", chunks),) if chunks else ()

    def _position(self) -> Any:
        return self._reader.position() if self._reader is not None else None

    def _fail(self, error: EvenflowError) -> None:
        self.over = True
        self.reports.post(Failed(error))


def _brings_rows(channel: Channel) -> bool:
    """Whether records are under way; the signals of a worker that joined when this one had finished may stay."""
    return any(isinstance(element, Batch) for element in channel.elements)


def _brings_state(channel: Channel) -> bool:
    """Whether state is under way; a request that comes when everything has been given, and the keys behind it, may stay."""
    return any(isinstance(element, (TransferStart, FetchReply, TransferEnd)) for element in channel.elements)
