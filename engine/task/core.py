"""The task of one worker as a state machine without I/O: it takes events, one method each, and returns effects.

An event is an element on a channel, a batch of the source, or a request of the coordinator; an effect is an element to send, or a
report to the coordinator. The parts are in files of their own: event time over the input channels, the alignment of barriers, the
chain of operators, the outputs, the checkpoints. Invariant: after an event that raises nothing, all its consequences are among
its effects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

import numpy as np

from ...state.files import StateFile
from ...state.slots import Mask
from ..batch import Batch
from ..broadcast_rows import is_broadcast
from ..errors import ProtocolError
from ..joins.sides import is_side, side_of
from ..keys.encoding import key_hashes
from ..keys.load import KeyLoad
from ..operators.base import OperatorInstance
from ..operators.keyed import KeyedInstance
from ..plan.task_spec import TaskSpec
from ..protocol.effects import Consumed, Effect, Finished, Latency, OperatorProblem, Prepared, Rewound, WorkOutcome
from ..protocol.elements import MAX_TIME, Barrier, Element, End, LatencyMark, Marker, Rewind, Watermark
from ..protocol.handover_step import Arrived, HandoverStep
from ..protocol.ids import NO_CHECKPOINT, ChannelId, CheckpointNumber, StepVersion, WorkerId, WorkerNumber
from ..protocol.read_value import KeyToRead
from ..protocol.restored_keys import RestoredKeys
from ..protocol.routing import Move
from ..state_description import PartsChange
from .alignment import Alignment
from .awaited_columns import AwaitedColumns
from .handover import REPLAYED, Handovers
from .held_inputs import HeldInputs
from .key_reads import read_key
from .operator_chain import OperatorChain
from .outputs import Outputs
from .story import Story
from .task_checkpoints import TaskCheckpoints
from .task_event_time import TaskEventTime


class TaskCore:
    """The state machine of a task. Used by one thread; after an exception only `close` may be called.

    `now`: seconds of any clock that doesn't go back. `epoch`: microseconds since 1970 at `now` 0, for operators that use the time
    of day. `handovers`: the moves that it takes part in, None without keyed state. While `outputs.paused`, it must not be given
    records.
    """

    def __init__(self, spec: TaskSpec, epoch: int = 0) -> None:
        self.spec = spec
        self.load = KeyLoad(spec.settings.key_groups, spec.settings.track_load)
        self.outputs = Outputs(spec)
        self.chain = OperatorChain(spec, self.load, self.outputs, epoch)
        self.handovers: Handovers | None = None
        self.rows_in = 0
        self.finished = False
        self._awaits_position = spec.joining
        self.stopped = False
        """True once the last barrier has passed: the task reads, takes and emits nothing more, but must still save its state."""
        self._time = TaskEventTime(spec.inputs)
        self._awaited: AwaitedColumns | None = None
        self._alignment = Alignment(spec.name)
        self._held = HeldInputs()
        self._behind: list[Batch] = []
        """Broadcast rows behind a marker: until the moves of its step are over, both owners of a key have those before it, and no more."""
        self._checkpoints = TaskCheckpoints()
        self._story = Story()
        self._out: list[Effect] = []

    def open(self) -> None:
        """Open the operators; called once before anything else."""
        self.chain.open()
        keyed = self.chain.keyed
        if keyed is not None:
            self.handovers = Handovers(self.spec.index, self.spec.number, keyed, self.outputs.sent)
            self._await_columns(keyed)
            if self.spec.joining:
                keyed.state.await_copy()
            if self.spec.settings.save_state:
                self._checkpoints.include(keyed.state, keyed.pending)

    def close(self) -> None:
        """Release the resources of sinks and keyed state; called once at the end, also after an error."""
        self.chain.close()

    def receive(self, channel: ChannelId, element: Element, now: float) -> list[Effect]:
        """Process an element that arrived on `channel`.

        Raises RecordError if a user function fails, ProtocolError, with the task's last events, for an element that must not
        arrive here.
        """
        self.outputs.now = now
        self._story.note(now, "receive", element, channel)
        try:
            if self.handovers is not None and self.handovers.is_peer(channel):
                self._receive_state(self.handovers, channel, element)
            elif channel in self._time.channels:
                self._receive(channel, element)
            else:
                self._refuse(channel)
        except ProtocolError as error:
            self._story.tell(error)
            raise
        return self._take()

    def polled(self, batch: Batch | None, watermark: int, now: float, dead_letters: Batch | None = None) -> list[Effect]:
        """Process the result of a source's poll: a batch or None, and the `watermark`, a lower bound of later records' times.

        `dead_letters`: the records that the reader refused.
        """
        self.outputs.now = now
        self._story.note(now, "poll", batch)
        if batch is not None and batch.num_rows:
            self.rows_in += batch.num_rows
            self.chain.process(0, batch)
        if dead_letters is not None:
            self.chain.emit_dead_letters(dead_letters)
        self._advance(watermark)
        return self._take()

    def exhausted(self, now: float) -> list[Effect]:
        """End the source task: its reader has no more records, or the job was asked to stop."""
        self._begin(now, "end of the source")
        self._finish()
        return self._take()

    def barrier(
        self, checkpoint: CheckpointNumber, now: float, base: CheckpointNumber = NO_CHECKPOINT, *, last: bool = False
    ) -> list[Effect]:
        """Begin checkpoint `checkpoint` in a source task, between two polls; `base` is the newest complete one.

        `last`: the job stops there, so the task must not be polled again.
        """
        barrier = Barrier(checkpoint, base, last)
        self._begin(now, "begin", barrier)
        self._pass_barrier(barrier)
        return self._take()

    def mark(self, created: int, now: float) -> list[Effect]:
        """Send a latency mark from a source task."""
        self.outputs.now = now
        self._mark(LatencyMark(created))
        return self._take()

    def announce(self, stage: str, steps: Sequence[HandoverStep], peers: Mapping[WorkerId, WorkerNumber]) -> None:
        """Note steps of a reconfiguration of `stage` that may follow, for the tasks that feed it and for its own.

        One of its own gets the steps in which it exchanges state, with `peers`.
        """
        if stage == self.spec.stage and self.handovers is not None:
            self.handovers.announce(steps, peers)
        self.outputs.announce(stage, steps)

    def attach(
        self,
        inputs: Sequence[tuple[ChannelId, ChannelId | None]],
        outputs: Sequence[tuple[int, int, ChannelId]],
        now: float,
        *,
        unused: bool = False,
    ) -> list[Effect]:
        """Add workers around this one: inputs, outputs (exchange, place, channel).

        What comes on an input waits for the end of the channel that is named with it, if any: its worker takes the place of that one's. A
        task that has finished ends the new outputs at once, as it does `unused` ones.
        """
        self._begin(now, "attach", (inputs, outputs))
        for channel, before in inputs:
            if not self.finished:
                self._time.add(channel)
                if before in self._time.channels:
                    self._held.hold(channel, {before})
        self.outputs.attach(outputs, ends=self.finished or unused)
        return self._take()

    def detach(self, outputs: Sequence[ChannelId], now: float) -> list[Effect]:
        """Remove workers after this one, whose channels end."""
        self._begin(now, "detach", outputs)
        if not self.finished:
            self.outputs.detach(outputs)
        return self._take()

    def rewind(self, time: int, own_times: Mapping[str, int], now: float) -> list[Effect]:
        """Continue a source task from another position, whose records are no earlier than `time`.

        `own_times`: the same bound for operators with an event time of their own, by name.
        """
        self._begin(now, "rewind", Rewind(time))
        self._awaits_position = False
        self._time.watermark = time
        self.outputs.rewind(self.chain.rewind(time, own_times))
        return self._take()

    def expect_rewind(self, channels: Sequence[ChannelId]) -> list[Effect]:
        """Hold the watermark until every one of these inputs has sent a new one or ended, then emit `Rewound`.

        What follows a new one waits for the others, so that the records of a split that another worker reads on stay in order.
        """
        self._time.expect(channels)
        self._note_rewound()
        return self._take()

    @property
    def saving(self) -> bool:
        """True if `save` has something to do."""
        return self._checkpoints.saving

    def save(self, now: float) -> list[Effect]:
        """Return a chunk of the state as of the last barrier; after the last chunk the checkpoint is prepared."""
        self.outputs.now = now
        effect = self._checkpoints.next()
        if effect is not None:
            self._out.append(effect)
        return self._take()

    def restore(self, watermark: int, own_times: Mapping[str, int], keys: RestoredKeys | None = None) -> None:
        """Continue from a checkpoint at this event time, before the inputs' own; `install` adds the state. After `open`.

        `keys`: the keys that belong here, None without keyed state.
        """
        self._advance(watermark)
        self.chain.restore(own_times)
        keyed, index = self.chain.keyed, self.spec.index
        if keyed is not None and keys is not None:
            keyed.state.await_copy()
            for key, split in keys.now.splits.items():
                if index in split.others:
                    keyed.state.expect(Move(split.home, index, copies=((key, split.dealt),)))

    def install(
        self, chunk: Batch, keys: RestoredKeys, saved_by: int, change: PartsChange | None = None, hidden: Mask | None = None
    ) -> None:
        """Restore the rows that belong here from a chunk of worker `saved_by`; `change`: how its parts differ from this state's.

        `hidden`: the rows that are older than others of their keys, shape (rows,). They may wait until they are needed. `restored`
        follows the last chunk.
        """
        keyed = self.chain.keyed
        if keyed is None:
            raise ProtocolError(f"task {self.spec.name}: it has no keyed state to restore")
        if is_broadcast(chunk.rows.schema):  # each worker restores all of it
            keyed.state.restore(chunk if hidden is None else chunk.filter(~hidden), keyed.context.name, change)
            return
        columns = keyed.key_columns(chunk.rows)
        self.chain.restored_types.learn(columns)
        hashes = key_hashes(columns, keyed.context.name)
        side = side_of(chunk.rows.schema).dealt if is_side(chunk.rows.schema) else None
        mine = keys.of(self.spec.index, saved_by, hashes, side)
        if hidden is not None:
            mine &= ~hidden
        if mine.any() or not chunk.num_rows:
            own = None if mine.all() else mine
            if change is None and keyed.state.by_key:
                keyed.pending.add(chunk.rows, hashes, own)
            else:
                keyed.state.restore(chunk if own is None else chunk.filter(own), keyed.context.name, change)
            self._await_columns(keyed)

    def restored(self) -> None:
        """Note that `install` has had all chunks; called once before any record."""
        self.chain.restored()

    def continue_from(self, checkpoint: CheckpointNumber, files: Sequence[StateFile]) -> None:
        """Note that the complete state of this worker at `checkpoint` was installed.

        The next delta extends its chain, `files`.
        """
        self._checkpoints.continue_from(checkpoint, files)

    def switch(self, version: StepVersion, now: float) -> list[Effect]:
        """Route by the table after step `version` from here on, between two batches.

        Raises ProtocolError for an unannounced step.
        """
        self._begin(now, "switch to the table after step", version)
        try:
            self.outputs.switch(version)
        except ProtocolError as error:
            self._story.tell(error)
            raise
        self.outputs.take(self._out)
        return self._take()

    def resume(self, now: float) -> list[Effect]:
        """Continue after a step that paused this task."""
        self._begin(now, "resume")
        self.outputs.resume()
        return self._take()

    def read(self, number: int, wanted: KeyToRead, now: float) -> list[Effect]:
        """Look for a key in the state, for request `number`, between two batches; also after the task has finished."""
        self.outputs.now = now
        keyed = self.chain.keyed
        if keyed is None or self.handovers is None:
            raise ProtocolError(f"task {self.spec.name}: it has no keyed state to read")
        keyed.pending.need(np.array([wanted.hash64], np.uint64))
        self._out.append(read_key(keyed, self.handovers, number, wanted))
        return self._take()

    @property
    def giving(self) -> bool:
        """True if `give` has something to do."""
        return self.handovers is not None and self.handovers.giving

    @property
    def awaited(self) -> bool:
        """True if records at another worker wait for all that this one has to `give`."""
        return self.handovers is not None and self.handovers.awaited

    def keeps(self, channel: ChannelId) -> bool:
        """Return True if elements of the channel wait here now, for a barrier or for other channels."""
        return channel in self._alignment.channels or self._held.holds(channel)

    def give(self, now: float) -> list[Effect]:
        """Send a chunk of the state that moves away."""
        self._begin(now, "give")
        if self.handovers is not None:
            self.handovers.give_some()
        return self._take()

    @property
    def replaying(self) -> bool:
        """True if `replay` has something to do."""
        return self.handovers is not None and self.handovers.replaying

    def replay(self, now: float) -> list[Effect]:
        """Process some of the records that had been set aside until their state was here."""
        self._begin(now, "replay")
        if self.handovers is not None:
            self._install(self.handovers, *self.handovers.replay(REPLAYED))
        return self._take()

    @property
    def installing(self) -> bool:
        """True if `install_some` has something to do."""
        return self.chain.keyed is not None and self.chain.keyed.pending.left > 0

    def install_some(self, now: float) -> list[Effect]:
        """Install a slice of the restored state that no record has needed yet."""
        self._begin(now, "install restored state")
        if self.chain.keyed is not None:
            self.chain.keyed.pending.some()
        return self._take()

    def idle(self, now: float) -> list[Effect]:
        """Flush the buffers, as no input is waiting."""
        self.outputs.now = now
        if self._may_tick:
            self.chain.tick()
        self.outputs.flush()
        return self._take()

    @property
    def _may_tick(self) -> bool:
        """True if operators may emit a new time. Receivers don't accept the channels of a task that joins before it has a position."""
        return self.chain.ticks and not (self.finished or self.stopped or self.outputs.paused or self._awaits_position)

    def work_ended(self, position: int, outcome: WorkOutcome, now: float) -> list[Effect]:
        """Take the outcome of the background work of the operator at `position`, between two batches."""
        self._begin(now, "background work ended", position)
        problem = self.chain.work_ended(position, outcome)
        if problem is not None:
            self._out.append(problem)
        return self._take()

    @property
    def operators(self) -> list[OperatorInstance]:
        """Return the operators of the chain, the first one first."""
        return self.chain.operators

    @property
    def watermark(self) -> int:
        """Return the task's event time in microseconds."""
        return self._time.watermark

    @property
    def held_elements(self) -> int:
        """Return the number of elements that wait behind a barrier until it has arrived on every channel."""
        return self._alignment.held + self._held.count

    def _begin(self, now: float, event: str, what: object = None) -> None:
        self.outputs.now = now
        self._story.note(now, event, what)

    def _refuse(self, channel: ChannelId) -> NoReturn:
        raise ProtocolError(f"task {self.spec.name}: an element on channel {channel}, which has ended or never was an input")

    def _take(self) -> list[Effect]:
        self.outputs.take(self._out)
        effects, self._out = self._out, []
        if self.chain.has_background_work and not self.finished and not self.stopped:
            effects.extend(self.chain.background_work())
        if self._awaited is not None and not self.finished:
            problem = self._awaited.problem(self.outputs.now)
            if problem is not None:
                effects.append(OperatorProblem(self.chain.operators[0].context.name, problem))
        return effects

    def _receive(self, channel: ChannelId, element: Element) -> None:
        if channel in self._alignment.channels:
            self._alignment.hold(channel, element)
        elif self._held.keep(channel, element):
            pass
        elif isinstance(element, Batch):
            self._receive_batch(channel, element)
        elif isinstance(element, Watermark):
            self._time.observe(channel, element.time)
            self._follow()
        elif isinstance(element, Rewind):
            self._time.rewind(channel, element.time)
            self._held.hold(channel, self._time.awaited)
            self._note_rewound()
            self._release(channel)
        elif isinstance(element, Barrier):
            self._alignment.arrive(channel, element)
            self._try_complete()
        elif isinstance(element, End):
            self._end(channel)
        elif isinstance(element, Marker):
            self._pass_marker(channel, element.version)
        elif isinstance(element, LatencyMark):
            self._mark(element)
        else:
            raise ProtocolError(f"task {self.spec.name}: a {type(element).__name__} arrived on channel {channel}, which is for records")

    def _receive_batch(self, channel: ChannelId, came: Batch) -> None:
        self.rows_in += came.num_rows
        if self.handovers is None:
            self.chain.process(0, came)
        elif not is_broadcast(came.rows.schema):
            batch = self.handovers.split(channel, came)
            if batch is not None:
                self.chain.process(0, batch)
            aside = came.num_rows - (0 if batch is None else batch.num_rows)
            if aside and self.handovers.replaying:  # faster than records are set aside, so that this ends however fast they come
                self._install(self.handovers, *self.handovers.replay(2 * aside))
        elif channel in self._time.frozen_channels:
            self._behind.append(came)
        else:
            self.chain.process(0, came)
        self._out.append(Consumed(channel, came))
        if self._awaited is not None:
            self._awaited.note(channel, side_of(came.rows.schema), behind=channel in self._time.frozen_channels)
            self._follow()

    def _receive_state(self, handovers: Handovers, channel: ChannelId, element: Element) -> None:
        if isinstance(element, Batch):
            self._out.append(Consumed(channel, element))
        self._install(handovers, *handovers.peer_element(channel, element))

    def _install(self, handovers: Handovers, batches: list[Batch], arrived: Arrived | None) -> None:
        """Process the batches that had been set aside, no earlier than the old owner's time, and report a completed arrival."""
        self._advance(handovers.came_at)
        for batch in batches:
            self.chain.process(0, batch)
        if arrived is not None:
            self._out.append(arrived)
            self._go_on()

    def _pass_marker(self, channel: ChannelId, version: StepVersion) -> None:
        if self.handovers is None:
            raise ProtocolError(f"task {self.spec.name}: a marker arrived, but it has no keyed state")
        self.handovers.marker(channel, version)
        if self.handovers.holds_time:
            self._time.freeze(channel)
            self._follow()
        self._pass_handover(self.handovers)
        self._go_on()

    def _pass_handover(self, handovers: Handovers) -> None:
        self.chain.settle()
        early = handovers.pass_barrier(self._time.channels, self.watermark)
        for batch in handovers.released():
            self.chain.process(0, batch)
        for source, element in early:
            self._install(handovers, *handovers.state_element(source, element))

    def _go_on(self) -> None:
        """Catch up on event time or the end of the task, which a handover may have held back."""
        if self.handovers is not None and not self.handovers.holds_time:
            self._thaw()
        if self._time.channels:
            self._follow()
        else:
            self._finish_if_done()

    def _release(self, channel: ChannelId) -> None:
        """Process the elements that waited for this input, which has ended or rewound."""
        for held, element in self._held.caught_up(channel):
            self._receive(held, element)

    def _note_rewound(self) -> None:
        if self._time.all_rewound():
            self._out.append(Rewound())
            if self._time.channels:
                self._follow()

    def _advance(self, watermark: int) -> None:
        if self._time.rises_to(watermark):
            self.chain.advance(watermark)
            self.outputs.advance(watermark)

    def _await_columns(self, keyed: KeyedInstance) -> None:
        self._awaited = AwaitedColumns(keyed.awaits) if keyed.awaits else None

    def _follow(self) -> None:
        """Advance to the inputs' event time, unless a join has to know columns first."""
        if self._awaited is not None:
            if self._awaited.hold(self._time.counted):
                return
            self._awaited = None
        self._advance(self._time.over_channels)

    def _thaw(self) -> None:
        self._time.thaw()
        behind, self._behind = self._behind, []
        for batch in behind:
            self.chain.process(0, batch)
        if self._awaited is not None:
            self._awaited.thaw(self.chain.keyed.awaits if self.chain.keyed is not None else ())

    def _mark(self, mark: LatencyMark) -> None:
        self.outputs.mark(mark)
        if not self.outputs.exchanges:
            self._out.append(Latency(mark.created))

    def _end(self, channel: ChannelId) -> None:
        self._time.end(channel)
        self._note_rewound()
        if self.handovers is not None:
            if self._time.frozen:
                self._follow()
            self._pass_handover(self.handovers)
            if not self.handovers.holds_time:
                self._thaw()
        if not self._time.channels:
            self._finish_if_done()
        else:
            self._follow()  # the end comes before the barrier that it may complete
            if self._alignment.begun:
                self._try_complete()
        self._release(channel)

    def _try_complete(self) -> None:
        barrier = self._alignment.complete(self._time.channels)
        if barrier is None:
            return
        self._pass_barrier(barrier)
        if barrier.last:  # even if an input has ended and event time could advance: the next run continues from here
            return
        for channel, element in self._alignment.release():
            self._receive(channel, element)
        if self._time.channels:
            self._follow()

    def _pass_barrier(self, barrier: Barrier) -> None:
        self.chain.settle()
        self.outputs.broadcast(barrier)
        self.outputs.take(self._out)
        prepared = Prepared(barrier.checkpoint, self.chain.prepare(barrier.checkpoint), self.watermark, own_times=self.chain.own_times)
        self.stopped = barrier.last
        at_once = self._checkpoints.begin(barrier, prepared)
        if at_once is not None:
            self._out.append(at_once)

    def _finish_if_done(self) -> None:
        """Finish once all inputs have ended, all state to give is sent, and all state to take has arrived."""
        if self.handovers is not None:
            self.handovers.give_some(everything=True)
            if self.handovers.taking:
                return
        if not self.finished:
            self._finish()

    def _finish(self) -> None:
        self._out.extend(self._checkpoints.rest())
        self._advance(MAX_TIME)
        self.chain.finish()
        self.outputs.broadcast(End())
        self.outputs.take(self._out)
        self._out.append(Finished(self.chain.prepare(CheckpointNumber(self._checkpoints.passed + 1))))
        self.finished = True
