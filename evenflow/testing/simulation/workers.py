"""A worker of the simulation: a task with the interpreter that also runs on Ray, and simulated ports.

The schedule decides which of its `may_...` happens next; each call lets it do one thing, at the virtual time `now`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from ...actors.task.pacing import Pacing
from ...actors.task.task_interpreter import TaskInterpreter
from ...actors.task.task_ports import TaskPorts
from ...engine.batch import Batch
from ...engine.errors import JobFailedError, ProtocolError
from ...engine.operators.aggregation.aggregate_windows import AggregateWindowsInstance
from ...engine.operators.keyed import KeyedInstance
from ...engine.plan.task_spec import TaskSpec
from ...engine.protocol.effects import Finished, OperatorProblem, Prepared, Rewound, StateRead, WorkOutcome
from ...engine.protocol.elements import FetchReply, TransferEnd, TransferStart
from ...engine.protocol.handover_step import Arrived
from ...engine.protocol.ids import Attempt, ChannelId
from ...engine.protocol.routing import Move, RoutingTable
from ...engine.source import SourceReader
from ...engine.task.core import TaskCore
from ...scheduler.load.long_call import LongCall
from ...scheduler.load.window import WorkerWindow
from ...scheduler.protocol.messages import (
    Announce,
    Announced,
    Attach,
    Attached,
    CheckpointFailed,
    Command,
    Detach,
    Failed,
    Report,
    SourcePaused,
)
from ...scheduler.record.restoring.restored_task import RestoredTask
from .checkpoint_writer import SimulatedSavedState, SimulatedWriter
from .network import Channel, Mailbox, SimulationError
from .storage import MemoryStorage
from .task_channels import TaskChannels

COSTS = ((0.0,), (0.0,), (0.0, 0.0, 0.0002, 0.002))
"""Seconds that pass between two readings of a task's clock: most tasks are as fast as can be, so that seeds reach all orders of events."""

LINGERS = (0.0, 0.0, 0.005)
"""Seconds for which a source with few rows rests."""

MARKS = (None, None, 0.1)
"""Seconds between two latency marks of a source; None: only those that the schedule sends."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A worker's report that its task has started."""


SimulatedReport = (
    Ready | Attached | SourcePaused | Rewound | Prepared | CheckpointFailed | Finished | Failed | Announced | Arrived
    | OperatorProblem | StateRead
)  # fmt: skip


class VirtualClock:
    """The clock of one task. Work takes a time that `random` draws, and none without it."""

    def __init__(self, random: Random | None) -> None:
        self._random, self._seconds, self._costs = random, 0.0, COSTS[0] if random is None else random.choice(COSTS)

    def reach(self, now: float) -> None:
        """Set the clock to `now`, unless it is ahead."""
        self._seconds = max(self._seconds, now)

    def now(self) -> float:
        if self._random is not None:
            self._seconds += self._random.choice(self._costs)
        return self._seconds

    def timestamp(self) -> int:
        return int(self._seconds * 1e9)


class SimulatedMeter:
    """A meter that checks its figures: work takes no negative time, and marks don't arrive before they are sent."""

    def __init__(self, task: TaskCore) -> None:
        self.useful = 0.0

    def add_useful(self, elapsed: float) -> None:
        if elapsed < 0.0:
            raise SimulationError(f"work took {elapsed} s")
        self.useful += elapsed

    def add_latency(self, milliseconds: float) -> None:
        pass  # tasks have clocks of their own

    def starved(self) -> float:
        return 0.0

    def due(self) -> bool:
        return False

    def waiting(self, *, for_credit: bool) -> AbstractContextManager[None]:
        raise NotImplementedError("a simulated task does not wait")

    def take(self, queued: int, queued_rows: int, refused: int, reader: SourceReader | None = None, skipped: int = 0) -> WorkerWindow:
        raise NotImplementedError("nothing is measured on a virtual clock")


@dataclass(frozen=True, slots=True)
class SimulatedReports:
    """Posts reports to the coordinator. Raises an error that no accident of the simulation explains: no restart may hide it."""

    mailbox: Mailbox[SimulatedReport]

    def __call__(self, report: Report) -> None:
        if isinstance(report, Failed):
            _raise_unexpected(report.error)
        assert not isinstance(report, WorkerWindow)  # nothing is measured on a virtual clock
        self.mailbox.post(report)


class SimulatedBackgroundWork:
    """Background work that is done when the task next looks for it, after some other event."""

    def __init__(self) -> None:
        self._wanted: list[tuple[int, Callable[[], Any]]] = []

    def begin(self, position: int, run: Callable[[], Any]) -> None:
        self._wanted.append((position, run))

    def take(self) -> Iterator[tuple[int, WorkOutcome]]:
        wanted, self._wanted = self._wanted, []
        for position, run in wanted:
            yield position, WorkOutcome(run())

    def close(self) -> None:
        self._wanted.clear()


class SimulatedWorker:
    """A simulated worker. `attempt`: the job's. `choices`: its possible events, None after a change."""

    def __init__(
        self,
        spec: TaskSpec,
        channels: dict[ChannelId, Channel],
        credit: int,
        storage: MemoryStorage,
        attempt: Attempt,
        restored: RestoredTask | None,
        touched: set[str],
        random: Random | None,
    ) -> None:
        self.spec, self.name, self.attempt = spec, spec.name, attempt
        self.commands: Mailbox[Command] = Mailbox()
        self.reports: Mailbox[SimulatedReport] = Mailbox()
        self.channels = TaskChannels(spec, channels, credit, touched)
        self._clock, self._writer = VirtualClock(random), SimulatedWriter(storage, spec.name, attempt, random)
        saved = SimulatedSavedState(storage)
        ports = TaskPorts(
            self.channels,
            self._clock,
            SimulatedReports(self.reports),
            Pacing(0.0) if random is None else Pacing(random.choice(LINGERS), random.choice(MARKS)),
            SimulatedMeter,
            self._writer,
            saved,
            SimulatedBackgroundWork(),
        )
        self._interpreter = TaskInterpreter(spec, ports, restored)
        self.task: TaskCore = self._interpreter.task
        self.started = self.dead = False
        self.choices: list[Any] | None = None
        self.known: dict[str | int, Any] = {}
        """Choices that were made before, by kind, and by channel."""
        self.long_call: LongCall | None = None
        """The call that its thread has been in for long, as its process would say."""

    @property
    def over(self) -> bool:
        """True if it only answers requests any more."""
        return self.dead or self._interpreter.over

    @property
    def may_take(self) -> bool:
        """True if it may process an element: it runs, is not paused, and has credit on every output."""
        return self.started and not self.over and not self.task.outputs.paused and self.channels.have_credit

    @property
    def may_give(self) -> bool:
        """True if there is state to send in the background."""
        return self.started and not self.over and self.task.giving

    @property
    def may_report_arrived(self) -> bool:
        """True if it has completed moves that it has yet to report."""
        return self._interpreter.resting and not self.dead

    @property
    def may_replay(self) -> bool:
        """True if there are records that had been set aside until their state was here."""
        return self.task.replaying and self.may_take

    @property
    def may_install(self) -> bool:
        """True if there is restored state to install in the background."""
        return self.started and not self.over and self.task.installing

    @property
    def may_poll(self) -> bool:
        """True if it is a source that may be polled."""
        return self._interpreter.is_source and self.may_take

    def may_tick(self, now: float) -> bool:
        """True if operators that count by the clock have not looked at it for a while."""
        at = self.task.chain.next_tick
        return at is not None and now >= at and self.started and self.may_take

    @property
    def may_save(self) -> bool:
        """True if there is state to save for a checkpoint."""
        return self.started and not self.over and self.task.saving

    @property
    def may_write(self) -> bool:
        """True if state for a checkpoint is not written yet."""
        return self._writer.waits and not self.over

    def open(self, now: float) -> None:
        """Start the task."""
        self._at(now).open()
        if not self._interpreter.over:
            self.started = True
            self.reports.post(Ready())

    def die(self) -> None:
        """End the process; the others don't know yet."""
        self.dead = True

    def receive(self, channel: Channel, now: float) -> None:
        """Take the oldest element of an input."""
        self._at(now).receive(channel.spec.id, channel.take())

    def poll(self, max_rows: int, mark: bool, now: float) -> None:
        """Poll the source once, perhaps after a latency mark."""
        self._at(now).poll(max_rows, mark=mark)

    def give(self, now: float) -> None:
        """Send a chunk of state."""
        self._at(now).give()

    def report_arrived(self, now: float) -> None:
        """Report completed moves."""
        self._at(now).report_arrived(at_once=True)

    def replay(self, now: float) -> None:
        """Process some records that had been set aside."""
        self._at(now).replay()

    def install(self, now: float) -> None:
        """Install a slice of the restored state."""
        self._at(now).install(behind=False)

    def flush(self, now: float) -> None:
        """Send the buffers."""
        self._at(now).idle()

    def save(self, now: float) -> None:
        """Make chunks of state for a checkpoint."""
        self._at(now).save(behind=False)

    def write(self) -> None:
        """Write its state for the oldest unwritten checkpoint, and report that, or the failure."""
        self._writer.write_oldest()
        self._interpreter.report_written()

    def tell(self, command: Command) -> None:
        """Send it a command."""
        self.commands.post(command)
        self.choices = None

    def obey(self, command: Command, now: float) -> None:
        """Carry out a command."""
        if isinstance(command, Announce):
            self.channels.meet(command)
        if isinstance(command, Attach):
            self.channels.attach(command)
        self._at(now).command(command)
        if isinstance(command, Detach):
            self.channels.detach(command)

    def close(self) -> None:
        """Close the task."""
        self._interpreter.close()

    def waits_for(self) -> str:
        """Return what it waits for, for people."""
        if not self.started:
            return "to be started"
        if self.over:
            return "nothing, it is over"
        full = [channel.spec.receiver for channel in self.channels.full]
        if full:
            return f"credit from {', '.join(sorted(set(full)))}"
        reader = self._interpreter.source.reader
        if reader is not None:
            return f"its source, which is {'finished' if reader.finished else 'not finished'}"
        waiting = [c.spec.sender for c in self.channels.inputs.values() if not c.elements and not c.ended]
        return f"input from {', '.join(sorted(set(waiting))) or 'no worker'}"

    def leftovers(self) -> list[str]:
        """Return what a task still holds that it must not hold once it has finished or stopped."""
        task, channels = self.task, self.channels
        held = task.held_elements
        panes = [o.context.name for o in task.operators if isinstance(o, AggregateWindowsInstance) and o.state and not task.stopped]
        return [
            *(["is not finished"] if not task.finished and not task.stopped else []),
            *(["has rows or signals in its buffers"] if task.outputs.wait else []),
            *([f"holds back {held} elements"] if held else []),
            *(["has state to install"] if task.installing and not task.stopped else []),
            *(f"has panes in `{name}`" for name in panes),
            *(f"has {len(c.elements)} elements from {c.spec.sender} before it" for c in channels.inputs.values() if _brings_rows(c)),
            *(task.handovers.unfinished() if task.handovers is not None else []),
            *(f"has not taken the state that {c.spec.sender} gave" for c in channels.state_inputs.values() if _brings_state(c)),
        ]

    def misplaced(self, table: RoutingTable) -> bool:
        """Return and remove the keys whose state belongs to another worker by its operator's table."""
        operator, index = self.task.operators[0], self.spec.index
        if not isinstance(operator, KeyedInstance):
            return False
        groups = tuple(np.flatnonzero(table.groups != index).tolist())
        shared = tuple(key for key, split in table.splits.items() if index in split.workers)
        here = (*(key for key, worker in table.keys.items() if worker == index), *shared)
        away = tuple(key for key, worker in table.keys.items() if worker != index and key not in shared)
        transfer = operator.state.depart(Move(index, index, groups, away, here))
        return any(chunk.num_rows for chunk in iter(lambda: transfer.next_chunk(1), None))

    def _at(self, now: float) -> TaskInterpreter:
        self._clock.reach(now)
        return self._interpreter


def _raise_unexpected(error: Exception) -> None:
    if isinstance(error, ProtocolError):
        raise error
    if isinstance(error, JobFailedError) and error.__cause__ is not None:
        raise error.__cause__


def _brings_rows(channel: Channel) -> bool:
    """True if records are in flight; the signals of a worker that joined when this one had finished may remain."""
    return any(isinstance(element, Batch) for element in channel.elements)


def _brings_state(channel: Channel) -> bool:
    """True if state is in flight; a request that arrives when all state has been sent, and the keys behind it, may remain."""
    return any(isinstance(element, (TransferStart, FetchReply, TransferEnd)) for element in channel.elements)
