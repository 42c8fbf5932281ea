"""The task: what one worker does, as a state machine without I/O.

Elements come in by channel, elements to send go out. A task is a tree of chained operators whose leaves are exchanges; its
event time is the minimum over its input channels. At a barrier it holds back the channels that have it until all have
(aligned barriers: Carbone et al., "Lightweight asynchronous snapshots", 2015), then prepares its sinks and passes it on.
An input that has ended counts as having every barrier.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from ..state.files import StateFile
from .batch import Batch, NoPythonValueError
from .errors import ProtocolError, RecordError
from .keys.encoding import key_hashes
from .keys.load import KeyLoad
from .operators.base import Context, OperatorInstance
from .operators.keyed import KeyedInstance
from .operators.write import WriteInstance
from .plan.task_spec import ExchangeSpec, TaskSpec
from .protocol.effects import Consumed, Effect, Finished, Latency, Prepared, Rewound, Saved, Switched
from .protocol.elements import MAX_TIME, MIN_TIME, Barrier, Element, End, LatencyMark, Marker, Rewind, Watermark
from .protocol.exchange import Exchange, HashExchange, RebalanceExchange, Sent
from .protocol.handover import Arrived, Handovers, Peer
from .protocol.handover_step import HandoverStep
from .protocol.routing import RoutingTable
from .snapshots.saving import Saving, Snapshots


class TaskCore:
    """Used by one thread. After an exception it must not be used again, but for `close`."""

    def __init__(self, spec: TaskSpec) -> None:
        self.spec = spec
        self.load = KeyLoad(spec.settings.key_groups, spec.settings.track_load)
        self.operators: list[OperatorInstance] = []
        """Fewer than the chain has if one couldn't be opened: a job that ends by that is measured and closed too."""
        self.exchanges = [_exchange(spec, e) for e in spec.exchanges]
        self.emitters = [_Emitter(self, consumers) for consumers in _consumers(spec, self.exchanges)]
        self.watermarks = dict.fromkeys(spec.inputs, MIN_TIME)
        self.watermark = MIN_TIME
        self.rows_in = 0
        self.rows_out = 0
        self.finished = False
        self._sent: list[Sent] = []
        self.handovers: Handovers | None = None
        self._frozen: dict[int, int] = {}
        self._steps: dict[int, tuple[HashExchange, HandoverStep]] = {}
        self._barrier: Barrier | None = None
        self._passed = 0
        self._snapshots: Snapshots | None = None
        self._saving: Saving | None = None
        self._expecting = False
        self._rewinding: set[int] = set()
        self._aligned: set[int] = set()
        self._held: dict[int, deque[Element]] = {}
        self._out: list[Effect] = []
        self._now = 0.0

    def open(self) -> None:
        """Make the operators ready; called once before anything else."""
        spec, settings = self.spec, self.spec.settings
        for chained in spec.chain:
            context = Context(chained.name, spec.index, spec.parallelism, settings.key_groups, self.load, settings.state)
            self.operators.append(chained.operator.open(context))
        head = self.operators[0]
        if isinstance(head, KeyedInstance):
            self.handovers = Handovers(spec.index, head, spec.peers, self._sent)
            self._snapshots = Snapshots(head.state) if settings.save_state else None

    def close(self) -> None:
        """Let go of what sinks and keyed state hold; called once at the end, also after an error."""
        for operator in self.operators:
            operator.close()

    def receive(self, channel: int, element: Element, now: float) -> list[Effect]:
        """An element has come in on `channel`. `now` in seconds, of any clock that doesn't go back.

        Raises RecordError if a user function fails, ProtocolError for a channel that this task hasn't or that has ended.
        """
        self._now = now
        if self.handovers is not None and self.handovers.is_peer(channel):
            self._receive_state(self.handovers, channel, element)
            return self._take()
        if channel not in self.watermarks:
            raise ProtocolError(f"task {self.spec.name}: an element on channel {channel}, which has ended or never was an input")
        self._receive(channel, element)
        return self._take()

    def polled(self, batch: Batch | None, watermark: int, now: float) -> list[Effect]:
        """A source's reader gave a batch (or none), and says that no later record is earlier than `watermark`."""
        self._now = now
        if batch is not None and batch.num_rows:
            self.rows_in += batch.num_rows
            self._process(0, batch)
        self._advance(watermark)
        return self._take()

    def exhausted(self, now: float) -> list[Effect]:
        """The source's reader has nothing more to give, or the job is asked to stop."""
        self._now = now
        self._finish()
        return self._take()

    def barrier(self, checkpoint: int, now: float, base: int = 0) -> list[Effect]:
        """A source task begins checkpoint `checkpoint` here, between two polls; `base` is the newest that is complete."""
        self._now = now
        self._pass_barrier(Barrier(checkpoint, base))
        return self._take()

    def mark(self, created: int, now: float) -> list[Effect]:
        """A source task sends a latency mark."""
        self._now = now
        self._mark(LatencyMark(created))
        return self._take()

    def announce(self, stage: str, steps: Sequence[HandoverStep]) -> None:
        """Steps of a reconfiguration of `stage` that may come, for the tasks that feed it and for its own."""
        if stage == self.spec.stage and self.handovers is not None:
            self.handovers.announce(steps)
        for spec, exchange in zip(self.spec.exchanges, self.exchanges, strict=True):
            if spec.target == stage and isinstance(exchange, HashExchange):
                self._steps.update((step.version, (exchange, step)) for step in steps)

    def attach(self, inputs: Sequence[int], outputs: Sequence[tuple[int, int]], peers: Sequence[Peer], now: float) -> list[Effect]:
        """More workers around this one: channels that come in, (exchange, channel) pairs that go out, peers of its own operator.

        A task that has finished ends the new outputs at once.
        """
        self._now = now
        for channel in inputs:
            if not self.finished:
                self.watermarks[channel] = MIN_TIME
        for position, channel in outputs:
            if self.finished:
                self._sent.append(Sent(channel, End()))
            else:
                self.exchanges[position].attach(channel, self._sent)
        if self.handovers is not None:
            self.handovers.add_peers(peers)
        return self._take()

    def detach(self, outputs: Sequence[int], peers: Sequence[int], now: float) -> list[Effect]:
        """Workers after this one leave: these channels end. And peers of its own operator, by their indexes."""
        self._now = now
        if not self.finished:
            for exchange in self.exchanges:
                exchange.detach(outputs, self._sent)
        if self.handovers is not None:
            self.handovers.drop_peers(peers)
        return self._take()

    def rewind(self, time: int, now: float) -> list[Effect]:
        """A source task goes on from another position, whose records are no earlier than `time`."""
        self._now = now
        self.watermark = time
        for exchange in self.exchanges:
            exchange.rewind(time, self._sent)
        return self._take()

    @property
    def saving(self) -> bool:
        """Whether `save` has something to do."""
        return self._saving is not None

    def save(self, now: float) -> list[Effect]:
        """Give out a chunk of the state as it was at the last barrier; the checkpoint is prepared once all of it is out."""
        self._now = now
        self._save_some()
        return self._take()

    def restore(self, watermark: int) -> None:
        """Go on from a checkpoint at this event time, whatever the inputs say; `install` brings the state. After `open`."""
        self._advance(watermark)

    def install(self, chunk: Batch, table: RoutingTable) -> None:
        """Take those keys of a chunk of a checkpoint's state that belong here by the operator's routing table."""
        head = self.operators[0]
        if not isinstance(head, KeyedInstance):
            raise ProtocolError(f"task {self.spec.name}: it has no keyed state to restore")
        mine = table.owners(key_hashes(head.key_columns(chunk.rows), head.context.name)) == self.spec.index
        if mine.any():
            head.state.restore(chunk if mine.all() else chunk.filter(mine), head.context.name)

    def go_on_from(self, checkpoint: int, files: Sequence[StateFile]) -> None:
        """What was installed was the whole state of this worker at `checkpoint`, and `files` its chain: the next delta goes on from it."""
        if self._snapshots is not None:
            self._snapshots.go_on_from(checkpoint, files)

    def switch(self, version: int, now: float) -> list[Effect]:
        """Route by the table after step `version` from here on, between two batches. Raises ProtocolError for an unannounced step."""
        if version not in self._steps:
            raise ProtocolError(f"task {self.spec.name}: step {version} was not announced")
        self._now = now
        exchange, step = self._steps.pop(version)
        exchange.switch(step, self._sent)
        self._collect()
        self._out.append(Switched(version))
        return self._take()

    def resume(self, now: float) -> list[Effect]:
        """Go on after a step that paused this task."""
        self._now = now
        for exchange in self.exchanges:
            exchange.paused = False
        return self._take()

    @property
    def paused(self) -> bool:
        """Whether the task must not process anything until `resume`."""
        for exchange in self.exchanges:  # noqa: SIM110 -- asked after every step; a generator would cost thrice as much
            if exchange.paused:
                return True
        return False

    @property
    def giving(self) -> bool:
        """Whether `give` has something to do."""
        return self.handovers is not None and self.handovers.giving

    def give(self, now: float) -> list[Effect]:
        """Give a chunk of the state that moves away in the background."""
        self._now = now
        if self.handovers is not None:
            self.handovers.give_some()
        return self._take()

    def idle(self, now: float) -> list[Effect]:
        """Nothing is waiting to be processed: let the buffers go."""
        self._now = now
        for exchange in self.exchanges:
            exchange.flush(self._sent)
        return self._take()

    def flush_due(self, now: float) -> bool:
        """Whether a row has waited for longer than `linger`."""
        waiting = [e.waiting_since for e in self.exchanges]
        return any(since is not None and now - since >= self.spec.settings.linger for since in waiting)

    @property
    def waits(self) -> bool:
        """Whether anything lies in a buffer."""
        return any(exchange.waits for exchange in self.exchanges)

    @property
    def held_elements(self) -> int:
        """Elements that wait behind a barrier until it has come on every channel."""
        return sum(map(len, self._held.values()))

    @property
    def late_records(self) -> int:
        """Records that came after their windows were emitted."""
        return sum(operator.late_records for operator in self.operators)

    @property
    def skipped_records(self) -> int:
        """Records that a user's function refused, and that did not stop the job."""
        return sum(operator.skipped_records for operator in self.operators)

    @property
    def state_bytes(self) -> int:
        """Estimate of the bytes of keyed state."""
        return sum(operator.state.nbytes for operator in self.operators if isinstance(operator, KeyedInstance))

    def _take(self) -> list[Effect]:
        self._collect()
        effects, self._out = self._out, []
        return effects

    def _collect(self) -> None:
        """Move what the exchanges sent behind the other effects."""
        for sent in self._sent:
            if isinstance(sent.element, Batch):
                self.rows_out += sent.element.num_rows
        self._out.extend(self._sent)
        self._sent.clear()

    def _receive(self, channel: int, element: Element) -> None:
        if channel in self._aligned:
            self._held.setdefault(channel, deque()).append(element)
        elif isinstance(element, Batch):
            self.rows_in += element.num_rows
            batch = element if self.handovers is None else self.handovers.split(element)
            if batch is not None:
                self._process(0, batch)
            self._out.append(Consumed(channel, element))
        elif isinstance(element, Watermark):
            self.watermarks[channel] = max(self.watermarks[channel], element.time)
            self._advance(self._time())
        elif isinstance(element, Rewind):
            self._rewind(channel, element.time)
        elif isinstance(element, Barrier):
            self._align(channel, element)
        elif isinstance(element, End):
            self._end(channel)
        elif isinstance(element, Marker):
            self._pass_marker(channel, element.version)
        elif isinstance(element, LatencyMark):
            self._mark(element)
        else:
            raise ProtocolError(f"task {self.spec.name}: a {type(element).__name__} came on channel {channel}, which is for records")

    def _receive_state(self, handovers: Handovers, channel: int, element: Element) -> None:
        if isinstance(element, Batch):
            self._out.append(Consumed(channel, element))
        self._install(*handovers.peer_element(channel, element))

    def _install(self, batches: list[Batch], arrived: Arrived | None) -> None:
        """Process what had been set aside, and say what has arrived."""
        for batch in batches:
            self._process(0, batch)
        if arrived is not None:
            self._out.append(arrived)
            self._go_on()

    def _pass_marker(self, channel: int, version: int) -> None:
        if self.handovers is None:
            raise ProtocolError(f"task {self.spec.name}: a marker came, but it has no keyed state")
        self.handovers.marker(channel, version)
        if self.handovers.holds_time:
            self._frozen[channel] = self.watermarks[channel]
            self._advance(self._time())
        self._pass_handover(self.handovers)
        self._go_on()

    def _pass_handover(self, handovers: Handovers) -> None:
        for source, element in handovers.pass_barrier(self.watermarks):
            self._install(*handovers.state_element(source, element))

    def _go_on(self) -> None:
        """What was held back for a handover may be due."""
        if self.handovers is not None and not self.handovers.holds_time:
            self._frozen.clear()
        if self.watermarks:
            self._advance(self._time())
        else:
            self._finish_if_done()

    def _rewind(self, channel: int, time: int) -> None:
        """What this task itself has told stays: senders rewind together, and none behind the earliest of what they had all told."""
        self.watermarks[channel] = time
        self._rewinding.discard(channel)
        self._note_rewound()

    def expect_rewind(self, channels: Sequence[int]) -> list[Effect]:
        """These inputs will say their event time anew; `Rewound` tells when all have, or have ended. Until then this task's stays."""
        self._rewinding = {channel for channel in channels if channel in self.watermarks}
        self._expecting = True
        self._note_rewound()
        return self._take()

    def _note_rewound(self) -> None:
        if self._expecting and not self._rewinding:
            self._expecting = False
            self._out.append(Rewound())
            if self.watermarks:
                self._advance(self._time())

    def _time(self) -> int:
        """Event time over all inputs; one that was frozen at its marker counts as it was then, even if it has ended since."""
        going = [time for channel, time in self.watermarks.items() if channel not in self._frozen]
        return min([*going, *self._frozen.values()])

    def _process(self, position: int, batch: Batch) -> None:
        try:
            self.operators[position].process(batch, self.emitters[position])
        except NoPythonValueError as error:
            raise RecordError(self.spec.chain[position].name, str(error)) from error

    def push(self, consumer: int | Exchange, batch: Batch) -> None:
        """Hand a batch to the next operator of the chain or to an exchange."""
        if isinstance(consumer, int):
            self._process(consumer, batch)
        else:
            consumer.push(batch, self._now, self._sent)

    def _advance(self, watermark: int) -> None:
        if watermark <= self.watermark or self._expecting:
            return
        self.watermark = watermark
        for position, operator in enumerate(self.operators):
            operator.advance(watermark, self.emitters[position])
        for exchange in self.exchanges:
            exchange.watermark = watermark

    def _mark(self, mark: LatencyMark) -> None:
        for exchange in self.exchanges:
            exchange.mark(mark)
        if not self.exchanges:
            self._out.append(Latency(mark.created))

    def _align(self, channel: int, barrier: Barrier) -> None:
        if self._barrier is not None and barrier != self._barrier:
            problem = f"barrier {barrier.checkpoint} on channel {channel} while aligning {self._barrier.checkpoint}"
            raise ProtocolError(f"task {self.spec.name}: {problem}")
        self._barrier = barrier
        self._aligned.add(channel)
        self._try_complete()

    def _end(self, channel: int) -> None:
        del self.watermarks[channel]
        if channel in self._rewinding:
            self._rewinding.discard(channel)
            self._note_rewound()
        if self.handovers is not None:
            if self._frozen:
                self._advance(self._time())
            self._pass_handover(self.handovers)
            if not self.handovers.holds_time:
                self._frozen.clear()
        if not self.watermarks:
            self._finish_if_done()
        elif self._barrier is not None:
            self._try_complete()
        else:
            self._advance(self._time())

    def _try_complete(self) -> None:
        if self._barrier is None or not self._aligned.issuperset(self.watermarks):
            return
        self._pass_barrier(self._barrier)
        self._barrier = None
        self._aligned.clear()
        held, self._held = self._held, {}
        for channel, elements in held.items():
            while elements:
                self._receive(channel, elements.popleft())
        if self.watermarks:
            self._advance(self._time())

    def _pass_barrier(self, barrier: Barrier) -> None:
        for exchange in self.exchanges:
            exchange.broadcast(barrier, self._sent)
        self._collect()
        prepared = Prepared(barrier.checkpoint, self._prepare(barrier.checkpoint), self.watermark)
        self._passed = barrier.checkpoint
        if self._snapshots is not None:
            self._saving = self._snapshots.begin(prepared, barrier.base)
        else:
            self._out.append(prepared)

    def _save_some(self, *, everything: bool = False) -> None:
        while self._saving is not None:
            chunk = self._saving.next()
            if chunk is None:
                self._out.append(self._saving.prepared)
                self._saving = None
            else:
                self._out.append(Saved(self._saving.prepared.checkpoint, chunk))
            if not everything:
                break

    def _prepare(self, checkpoint: int) -> dict[str, list[Any]]:
        return {o.context.name: o.prepare(checkpoint) for o in self.operators if isinstance(o, WriteInstance)}

    def _finish_if_done(self) -> None:
        """All inputs have ended: give what is still to be given; what is still to be taken is waited for."""
        if self.handovers is not None:
            self.handovers.give_some(everything=True)
            if self.handovers.taking:
                return
        if not self.finished:
            self._finish()

    def _finish(self) -> None:
        self._save_some(everything=True)
        self._advance(MAX_TIME)
        for position, operator in enumerate(self.operators):
            operator.finish(self.emitters[position])
        for exchange in self.exchanges:
            exchange.broadcast(End(), self._sent)
        self._collect()
        self._out.append(Finished(self._prepare(self._passed + 1)))
        self.finished = True


class _Emitter:
    """`Emit` for one operator of the chain."""

    __slots__ = ("consumers", "task")

    def __init__(self, task: TaskCore, consumers: dict[str, list[int | Exchange]]) -> None:
        self.task, self.consumers = task, consumers

    def __call__(self, batch: Batch, port: str = "out") -> None:
        for consumer in self.consumers.get(port, ()):
            self.task.push(consumer, batch)


def _consumers(spec: TaskSpec, exchanges: Sequence[Exchange]) -> list[dict[str, list[int | Exchange]]]:
    consumers: list[dict[str, list[int | Exchange]]] = [{} for _ in spec.chain]
    for position, chained in enumerate(spec.chain):
        for source, port in chained.inputs:
            consumers[source].setdefault(port, []).append(position)
    for exchange_spec, exchange in zip(spec.exchanges, exchanges, strict=True):
        source, port = exchange_spec.source
        consumers[source].setdefault(port, []).append(exchange)
    return consumers


def _exchange(spec: TaskSpec, exchange: ExchangeSpec) -> Exchange:
    batch_rows = spec.settings.batch_rows
    if exchange.keys is not None and exchange.table is not None:
        return HashExchange(exchange.channels, batch_rows, spec.chain[exchange.source[0]].name, exchange.keys, exchange.table)
    return RebalanceExchange(exchange.channels, batch_rows)
