"""The interpreter of a task: passes events to a `TaskCore` and turns the effects into calls on ports.

Ray, the local runtime and the simulation run their tasks through it; they differ only in the ports that they supply.

Invariant: an error in the task or its source is reported once, as `Failed`. After that the interpreter is `over` and does nothing
more. A task that has finished is `over` too, but still answers rescales and requests for state.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, assert_never

from ...engine.batch import Batch
from ...engine.errors import JobFailedError, is_own, shown
from ...engine.hopeless import judged
from ...engine.plan.task_spec import TaskSpec
from ...engine.protocol.effects import (
    Consumed,
    Effect,
    Finished,
    Latency,
    OperatorProblem,
    Prepared,
    Rewound,
    SavedChunk,
    Sent,
    StateRead,
    Work,
)
from ...engine.protocol.elements import Element, TransferEnd
from ...engine.protocol.handover_step import Arrived
from ...engine.protocol.ids import ChannelId, WorkerId
from ...engine.protocol.restored_keys import RestoredKeys
from ...engine.protocol.state_channels import is_state_channel
from ...engine.snapshots.chain import marked
from ...engine.task.core import TaskCore
from ...scheduler.protocol.messages import (
    Announce,
    Announced,
    ApplySettings,
    Attach,
    Attached,
    BeginCheckpoint,
    CheckpointFailed,
    Command,
    Detach,
    ExpectRewind,
    Failed,
    PauseSource,
    ReadState,
    Rescaling,
    Resume,
    ResumeSource,
    Shutdown,
    SourcePaused,
    StopSource,
    Switch,
    TakeSource,
)
from ...scheduler.record.restoring.restored_task import RestoredTask
from ...state.errors import CorruptCheckpointError, CorruptStateError, EvenflowError, StateBackendError
from ...state.redacted_output import cleared
from .pacing import IDLE, SAVE_SECONDS
from .polled_source import PolledSource
from .running_code import RunningCode
from .task_ports import CheckpointReader, TaskPorts


class TaskInterpreter:
    """The interpreter of one task. Used by one thread."""

    def __init__(self, spec: TaskSpec, ports: TaskPorts, restored: RestoredTask | None = None) -> None:
        self.spec, self._restored = spec, restored
        self._channels, self._reports, self._writer, self._saved = ports.channels, ports.reports, ports.writer, ports.saved
        self._background = ports.background
        self._now, self._timestamp = ports.clock.now, ports.clock.timestamp
        self.task = TaskCore(spec, self._timestamp() // 1_000 - round(self._now() * 1_000_000))
        self.source = PolledSource(spec)
        self.meter = ports.meter(self.task)
        self._pacing = ports.pacing
        self._arrived = deque[tuple[float, Arrived]]()
        """The moves that are complete here, with the times at which to report them."""
        self.over = False
        self.running = RunningCode()
        """The call that the task is in, for other threads."""

    def open(self) -> None:
        """Open the reader and the operators, and restore their state."""
        self.running.begin()
        try:
            self.task.open()
            self.source.open()
            if self._restored is not None:
                self._restore(self._restored)
        except BaseException as error:  # noqa: BLE001 -- a user's source or sink may raise anything, and the user must hear of it
            self.fail(error)
        self.running.end()

    def _restore(self, restored: RestoredTask) -> None:
        self.task.restore(restored.watermark, restored.own_times, restored.keys)
        if restored.keys is not None and self._saved is not None:
            try:
                self._restore_state(restored, restored.keys, self._saved)
            except CorruptStateError as error:
                raise CorruptCheckpointError(self.spec.name, restored.checkpoint, str(error)) from error
        self.source.seek(restored.position)

    def _restore_state(self, restored: RestoredTask, keys: RestoredKeys, saved: CheckpointReader) -> None:
        for chain in restored.chains:
            for chunk, hidden in marked(saved.chunks(restored.checkpoint, file) for file in reversed(chain.files)):
                self.task.install(Batch(chunk), keys, chain.worker, restored.change, hidden)
        self.task.restored()
        if keys.same and restored.checkpoint and restored.change is None:  # else the next checkpoint must hold the whole state
            self.task.continue_from(restored.checkpoint, restored.chains[0].files)

    @property
    def is_source(self) -> bool:
        """True if it has a source to poll now."""
        return self.source.reader is not None and not self.over and not self.source.paused and not self.task.stopped

    def receive(self, channel: ChannelId, element: Element) -> None:
        """Process a received element."""
        self._bring()
        began = self._now()
        if self.task.finished:
            self._answer(self.task.receive, channel, element)
        else:
            self._work(self.task.receive, channel, element)
        if is_state_channel(channel) and not isinstance(element, TransferEnd):
            self._pacing.took(began, self._now())

    def poll(self, rows: int, *, mark: bool = False) -> int:
        """Poll the source once, for about `rows` rows at most, unless few rows gather in it. Returns the number of rows read.

        A latency mark goes before the rows if `mark`, or if one is due.
        """
        now = self._now()
        if not self._pacing.may_poll(now):
            return 0
        if self._pacing.look_due(now):
            self._pacing.looked(self.meter.starved(), now)
        self._bring()
        mark = mark or self._pacing.mark_due(now)
        before = self.task.rows_in
        self._work(self._poll, rows, mark)
        read = self.task.rows_in - before
        self._pacing.polled(read, now, marked=mark)
        return read

    def sleep_for(self) -> float:
        """Return the seconds until there may be work: until the source may have rows, or more state may be given away or saved."""
        if self.over:
            return IDLE
        reader = self.source.reader if not self.task.stopped else None
        ready_in = None if reader is None else reader.ready_in()
        task = self.task
        if task.awaited or task.replaying:
            return 0.0
        now = self._now()
        until = self._pacing.sleep_for(now, ready_in, giving=task.giving, installing=task.installing, saving=task.saving)
        return min(until, max(0.0, self._arrived[0][0] - now)) if self._arrived else until

    def _poll(self, rows: int, mark: bool, now: float) -> list[Effect]:
        reader = self.source.reader
        if reader is None:
            return []
        batch = reader.poll(rows)
        watermark, dead_letters = reader.watermark(), reader.dead_letters()
        if batch is not None and batch.num_rows > 0:
            effects = self.task.mark(self._timestamp(), now) if mark else []
            return effects + self.task.polled(batch, watermark, now, dead_letters)
        nothing = dead_letters is None and watermark <= self.task.watermark
        effects = [] if nothing else self.task.polled(batch, watermark, now, dead_letters)
        return effects + self.task.exhausted(now) if reader.finished else effects

    def idle(self) -> None:
        """Send buffered rows, because there is nothing else to do."""
        self._bring()
        if self.task.outputs.wait or self.task.chain.ticks:
            self._work(self.task.idle)

    def _bring(self) -> None:
        """Bring the task what has been done outside of its thread."""
        if self._background is not None and not self.over:
            for position, outcome in self._background.take():
                self._work(partial(self.task.work_ended, position, outcome))

    def flush_if_due(self) -> None:
        """Send buffered rows if a row has waited for longer than `linger`."""
        if self.task.outputs.due(self._now()):
            self._work(self.task.idle)

    def give(self) -> bool:
        """Send a chunk of the state that moves away, if it is time to. True if there was one."""
        if self.over or not self.task.giving:
            return False
        begun = self._now()
        if not self.task.awaited and not self._pacing.may_give(begun):
            return False
        self._work(self.task.give)
        self._pacing.gave(begun, self._now())
        return True

    @property
    def resting(self) -> bool:
        """True if it has completed moves that it has yet to report, so that the next step leaves time for records."""
        return bool(self._arrived)

    def report_arrived(self, *, at_once: bool = False) -> None:
        """Report the moves after which it has rested, or all that are complete."""
        while self._arrived and (at_once or self._arrived[0][0] <= self._now()):
            self._reports(self._arrived.popleft()[1])

    def replay(self) -> bool:
        """Process some of the records that had been set aside until their state was here. True if there were any."""
        if self.over or not self.task.replaying:
            return False
        self._work(self.task.replay)
        return True

    def install(self, *, behind: bool) -> bool:
        """Install a slice of the restored state, if it is time to. True if there was one. `behind`: records wait."""
        if self.over or not self.task.installing or not self._pacing.may_install(begun := self._now(), behind=behind):
            return False
        self._work(self.task.install_some)
        self._pacing.installed(begun, self._now())
        return True

    def save(self, *, behind: bool) -> bool:
        """Make some chunks of the state that goes into a checkpoint, if it is time to, and report what is written. True if it made any.

        `behind`: records wait.
        """
        self.report_written()
        if self.over or not self.task.saving:
            self._pacing.nothing_to_save()
            return False
        begun = now = self._now()
        if not self._may_write or not self._pacing.may_save(begun):
            return False
        while now - begun < SAVE_SECONDS and self._may_write and self.task.saving and not self.over:
            self._work(self.task.save)
            now = self._now()
        self._pacing.saved(begun, now, behind=behind)
        return True

    @property
    def _may_write(self) -> bool:
        """True unless so many chunks wait to be written that the task makes no more for now."""
        return self._writer is None or not self._writer.busy

    def measure(self, queued: int, queued_rows: int, refused: int, blocked: tuple[ChannelId, ...] = ()) -> None:
        """Report the figures of the window; if the size of the state can't be read, the task fails as with any other work on it.

        `blocked`: the channels that wait for credit.
        """
        self.running.begin()
        try:
            reader = self.source.reader
            skipped = 0 if reader is None else reader.skipped_records
            window = self.meter.take(queued, queued_rows, refused, None if self.over else reader, skipped)
        except StateBackendError as error:
            self.fail(error)
        else:
            self._reports(replace(window, blocked=blocked) if blocked else window)
        self.running.end()

    def report_written(self) -> None:
        """Report the checkpoints whose state has been written, or could not be."""
        if self._writer is not None and not self.over:
            self._report_all(self._writer.take())

    def command(self, command: Command) -> None:  # noqa: C901 -- a line for each kind
        """Carry out a command from the coordinator; one that arrives too late changes nothing."""
        match command:
            case Attach() | Detach() | ExpectRewind() | PauseSource() | TakeSource() | ResumeSource():
                self._answer(lambda now: self._rescale(command, now))
            case ReadState():
                if not self.over or self.task.finished:
                    self._answer(lambda now: self.task.read(command.number, command.wanted, now))
            case Announce():
                self._work(lambda _: self._announce(command))
            case Switch():
                self._work(lambda now: self.task.switch(command.version, now))
            case Resume():
                self._work(self.task.resume)
            case BeginCheckpoint():
                if self.source.reader is not None:
                    self._work(lambda now: self.task.barrier(command.checkpoint, now, command.base, last=command.last))
            case StopSource():
                if self.source.reader is not None:
                    self._work(self.task.exhausted)
            case ApplySettings():
                self.task.outputs.linger = command.linger
                self._pacing.set_linger(command.linger, self._now())
            case Shutdown():
                self.over = True
            case _:
                assert_never(command)

    def _announce(self, announcement: Announce) -> list[Effect]:
        self.task.announce(announcement.stage, announcement.steps, announcement.peers)
        self._reports(Announced(announcement.number))
        return []

    def _rescale(self, command: Rescaling, now: float) -> list[Effect]:
        """Carry out a rescaling command. The answer follows the effects; a source has none."""
        task = self.task
        match command:
            case Attach():
                self._carry_out_all(task.attach(command.inputs, command.outputs, now, unused=command.unused))
                self._reports(Attached(command.token, task.finished))
            case Detach():
                self._carry_out_all(task.detach(command.outputs, now))
                self._reports(Attached(command.token))
            case ExpectRewind():
                self._carry_out_all(task.expect_rewind(command.channels))
                self._reports(Attached(command.token))
            case PauseSource():
                self.source.paused = True
                self._reports(SourcePaused(command.token, self.source.position, self.over, task.chain.own_times))
            case ResumeSource():
                self.source.paused = False
            case TakeSource():
                self.source.paused = False
                if not self.over:
                    return self._take_source(command, now)
            case _:
                assert_never(command)
        return []

    def _take_source(self, share: TakeSource, now: float) -> list[Effect]:
        if share.position is None:
            return self.task.exhausted(now)
        earliest = self.source.take(share.index, share.parallelism, share.position)
        return self.task.rewind(earliest, share.own_times, now)

    def fail(self, error: BaseException) -> None:
        """Report the error, unless the task is over: the worker can't continue."""
        if not self.over:
            self.over = True
            self._reports(Failed(own_error(error, self.spec.name)))

    def close(self) -> None:
        """Close the reader, the operators and the writer; called once at the end, also after an error."""
        self.task.close()
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        if self._background is not None:
            self._background.close()
        self.source.close()

    def _work(self, step: Callable[..., Iterable[Effect]], *what: Any) -> None:
        """Run a step of the task, `step(*what, now)`, unless it is over."""
        if not self.over:
            self._answer(step, *what)

    def _answer(self, step: Callable[..., Iterable[Effect]], *what: Any) -> None:
        """Run a step of the task even if it is over, because other workers wait for it."""
        begun = self.running.begun = self._now()
        try:
            for effect in step(*what, begun):
                self._carry_out(effect)
        except BaseException as error:  # noqa: BLE001 -- whatever a user's function or source raises must reach the user
            self.fail(error)
        self.running.begun = None
        self.meter.add_useful(self._now() - begun)

    def _carry_out_all(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            self._carry_out(effect)

    def _carry_out(self, effect: Effect) -> None:  # noqa: C901 -- a line for each kind
        match effect:
            case Sent():
                self._channels.send(effect.channel, effect.element)
            case Consumed():
                self._channels.consumed(effect.channel, effect.batch)
            case Latency():
                self.meter.add_latency((self._timestamp() - effect.created) / 1e6)
            case SavedChunk():
                if self._writer is not None:
                    self._writer.write(effect.checkpoint, effect.chunk)
            case Prepared():
                self._prepared(replace(effect, position=self.source.position))
            case Finished():
                if self._writer is not None:
                    self._report_all(self._writer.flush())
                self.over = True
                self.report_arrived(at_once=True)
                self._reports(replace(effect, position=self.source.position))
            case Work():
                assert self._background is not None
                self._background.begin(effect.position, effect.run)
            case Arrived():
                self._note_arrived(effect, self._pacing.rested_at())
            case Rewound() | OperatorProblem() | StateRead():
                self._reports(effect)
            case _:
                assert_never(effect)

    def _note_arrived(self, arrived: Arrived, rested_at: float) -> None:
        """Report a complete move, after a rest if another step is to follow."""
        self._arrived.append((rested_at, arrived))
        self.report_arrived(at_once=self.task.handovers is None or not self.task.handovers.expects_steps)

    def _prepared(self, prepared: Prepared) -> None:
        if self._writer is None:
            self._reports(prepared)
        else:
            self._writer.finish(prepared)
            self._report_all(self._writer.take())

    def _report_all(self, reports: Iterable[Prepared | CheckpointFailed]) -> None:
        for report in reports:
            self._reports(report)


def own_error(error: BaseException, worker: WorkerId) -> EvenflowError:
    """Return the error as an EvenflowError, which any process can read, without secrets. An unexpected error is the cause of a
    JobFailedError.
    """
    error = cleared(error)
    if isinstance(error, EvenflowError) and is_own(error):
        return judged(error)
    trace = "".join(traceback.format_exception(error))
    failure = JobFailedError(f"worker {worker} failed: {shown(error)}\n{trace}")
    failure.__cause__ = error
    return judged(failure)
