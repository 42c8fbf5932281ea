"""A worker's run of one attempt of its job: one task, its sockets, and the thread that runs them.

Calls from other threads only fill an inbox; the run's own thread does all the rest, so that neither the task nor a socket is ever
used by two threads.
"""

from __future__ import annotations

import gc
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic, sleep

import pyarrow as pa

from ...engine.batch import Batch
from ...engine.errors import JobTimeoutError
from ...engine.plan.channel_spec import ChannelSpec
from ...engine.plan.task_spec import TaskSpec
from ...engine.protocol.elements import Element
from ...engine.protocol.ids import Attempt, ChannelId, WorkerId, WorkerNumber
from ...engine.protocol.state_channels import is_state_channel, state_channel
from ...scheduler.configs.run import RunConfig
from ...scheduler.load.long_call import LongCall
from ...scheduler.protocol.messages import (
    LAST_ELEMENTS_SECONDS,
    Announce,
    ApplySettings,
    Attach,
    Command,
    Detach,
    InOrder,
    Report,
    Shutdown,
)
from ...scheduler.record.restoring.restored_task import RestoredTask
from ...state.store import CheckpointStore
from ..attempt_log import note_step
from ..channels.address import Address
from ..channels.credit import ChannelLimits
from ..channels.security import Security
from ..channels.transport import Transport
from ..process_log import set_log_level
from .input_queues import InputQueues
from .poll_size import PollSize
from .real_task import real_task

TURN = 64
"""The most elements that a worker takes before it checks its sockets and commands again..."""

TURN_SECONDS = 0.005
"""...and the seconds after which it takes no more, so that commands and other workers' requests don't wait behind many records."""

STATE_SECONDS = 0.003
"""Seconds after which a worker installs no more state before it takes records again."""

LONGEST_SLEEP = 0.1

POLL_UNIT = 0.001
"""The unit of ZeroMQ's polls, in seconds."""

LISTEN_PATIENCE = 10.0
"""Seconds that a worker has to begin to listen on another address: as long as a user's function may keep it."""


@dataclass(frozen=True, slots=True)
class _Listen:
    """An internal command: listen on `host` too, and signal `done`."""

    host: str
    done: threading.Event = field(default_factory=threading.Event)


def load_arrow() -> None:
    """Load the parts of Arrow that take a quarter of a second if pandas is installed, the first time in a process."""
    pa.array([0]).dictionary_encode()


def load_storage(url: str) -> None:
    """Load the library that reads and writes checkpoints at `url`. Raises StoreError if it can't be used."""
    CheckpointStore(url)


class TaskRun:
    """A run of a task. `report(number, report)` reports to the coordinator. Created, then `connect`, then `start`, each once.

    A task that resumes from a checkpoint begins at once to restore its state, while other workers' processes still start; it
    sends nothing and takes no input before `start`.
    """

    def __init__(
        self,
        job: str,
        attempt: Attempt,
        spec: TaskSpec,
        config: RunConfig,
        restored: RestoredTask | None,
        security: Security,
        report: Callable[[Attempt, int, Report], None],
        host: str,
    ) -> None:
        load_arrow()
        self._job, self.attempt, self._config, self._restored = job, attempt, config, restored
        self.spec = spec.of_attempt(job, attempt)
        self._send_report = report
        self._inbox: deque[Command | _Listen] = deque()
        self._order = InOrder[Command]()
        self._lock = threading.Lock()
        self._ended = False
        self._pending = InputQueues()
        self._state: deque[tuple[ChannelId, Element]] = deque()
        """Received elements of other workers' state, which are processed first."""
        self._reported = 0
        self._rest = 0.0
        self._poll_size = PollSize(config.network.source_rows)
        self._rows_read, self._blocked_before = 0, 0.0
        self._peers: set[WorkerNumber] = set()
        """The workers with which there are open channels for state."""
        limits = ChannelLimits(config.network.credit_batches, config.network.credit_bytes)
        self._transport = Transport(f"{job}/{spec.name}", attempt, security, limits, host=host)
        self._thread: threading.Thread | None = None
        self._go = threading.Event()
        self._held: list[Report] | None = []
        """Reports to send once the run has started."""
        self._over: Callable[[], None] = lambda: None
        self._linger = 0.0
        note_step(job, attempt, "task created", spec.name)
        if restored is not None:
            self._begin()

    @property
    def address(self) -> Address:
        return self._transport.address

    def connect(self, addresses: Mapping[WorkerId, Address], channels: tuple[ChannelSpec, ...]) -> None:
        """Open the channels for records that begin or end here."""
        for channel in channels:
            if channel.receiver == self.spec.name:
                self._transport.accept(channel.id, f"{self._job}/{channel.sender}")
            if channel.sender == self.spec.name:
                self._transport.connect(channel.id, addresses[channel.receiver], paced=True)

    def start(self, over: Callable[[], None]) -> None:
        """Begin to work; `over` is called when the run ends itself: after a shutdown, or because its thread could not continue."""
        self._over = over
        self._go.set()
        if self._thread is None:
            self._begin()

    def _begin(self) -> None:
        self._task = real_task(self.spec, self._transport, self._report, self._config, self._restored)
        self._thread = threading.Thread(target=self._run, name=f"{self._job}/{self.spec.name}", daemon=True)
        self._thread.start()

    def long_call(self) -> LongCall | None:
        """Return the call that the task has been in for long, if there is one. May be called by any thread."""
        return None if self._thread is None else self._task.running.long_call()

    def end(self, patience: float) -> bool:
        """End without cleaning up; return True if the thread ended within `patience` seconds."""
        self._ended = True
        self._go.set()
        if self._thread is None:
            self._transport.close(linger=0)
            return True
        self._transport.wake()
        self._thread.join(patience)
        return not self._thread.is_alive()

    def command(self, number: int, command: Command) -> None:
        """Handle command `number` from the coordinator; they may arrive in any order."""
        with self._lock:
            self._inbox.extend(self._order.put(number, command))
        self._transport.wake()

    def listen(self, host: str) -> Address:
        """Let workers on other nodes connect, at `host`; return the new address.

        Raises JobTimeoutError if the run is too busy, because it handles this between two turns.
        """
        wanted = _Listen(host)
        self._inbox.append(wanted)
        self._transport.wake()
        if not wanted.done.wait(LISTEN_PATIENCE):
            raise JobTimeoutError(
                f"worker {self.spec.name}: it was busy for {LISTEN_PATIENCE:g} s and could not begin to listen to workers on other nodes"
            )
        return self.address

    def _report(self, report: Report) -> None:
        if self._held is not None:
            self._held.append(report)
            return
        number, self._reported = self._reported, self._reported + 1
        self._send_report(self.attempt, number, report)

    def _run(self) -> None:
        task = self._task
        task.open()
        # The tables of keyed state exist now: kept out of the garbage collector's rounds, they don't stop the stream for a visit of a
        # million keys that hold nothing to collect.
        gc.freeze()
        note_step(self._job, self.attempt, "state restored", self.spec.name)
        self._go.wait()  # for `start` or `end`; if the coordinator calls neither, it is lost and this process ends
        held, self._held = self._held or [], None
        for report in held:
            self._report(report)
        try:
            while self._obey():
                try:
                    self._turn()
                    if task.meter.due():
                        self._measure()
                except BaseException as error:  # noqa: BLE001 -- whatever it is must reach the user
                    task.fail(error)
            self._measure()
            if self._linger:
                self._transport.flush(self._linger)  # what waits for credit has not been sent yet
        finally:
            task.close()
            self._transport.close(self._linger)
            if not self._ended:
                self._over()

    def _obey(self) -> bool:
        """Carry out the received commands; return False after a shutdown or `end`."""
        while self._inbox and not self._ended:
            command = self._inbox.popleft()
            if isinstance(command, _Listen):
                self._transport.listen(command.host)
                command.done.set()
                continue
            if isinstance(command, Shutdown):
                # A job that ends has had every element by now; one that goes on may still wait for the last ones of this worker.
                self._linger = LAST_ELEMENTS_SECONDS if command.others_go_on else 0.0
                return False
            if isinstance(command, ApplySettings):
                set_log_level(command.log_level)
            elif isinstance(command, Announce):
                self._meet_peers(command)
            elif isinstance(command, Attach):
                self._open(command)
            elif isinstance(command, Detach):
                self._forget_peers(command)
            self._task.command(command)
            if isinstance(command, Detach):
                for channel in command.outputs:
                    self._transport.retire(channel)
        return not self._ended

    def _open(self, attach: Attach) -> None:
        """Accept and open the channels of joining workers."""
        for channel in attach.accept:
            self._transport.accept(channel.id, f"{self._job}/{channel.sender}")
        for channel in attach.connect:
            self._transport.connect(channel.id, attach.addresses[channel.receiver], paced=True)

    def _meet_peers(self, announcement: Announce) -> None:
        """Open channels for state to and from the workers with which a migration exchanges state, unless an earlier one did."""
        own = self.spec.number
        for worker, number in announcement.peers.items():
            if number not in self._peers:
                self._peers.add(number)
                self._transport.accept(state_channel(number, own), f"{self._job}/{worker}")
                self._transport.connect(state_channel(own, number), announcement.addresses[worker])

    def _forget_peers(self, detach: Detach) -> None:
        """Abandon the channels to workers that have left, whose credit for a request in flight will never be returned."""
        for number in self._peers.intersection(detach.peers):
            self._peers.remove(number)
            self._transport.abandon(state_channel(self.spec.number, number))

    def _turn(self) -> None:
        """Look at the sockets, process what has come, poll the source, and let the buffers go if there is nothing to do."""
        task, transport, pending = self._task, self._transport, self._pending
        self._receive()
        self._take_state()
        taken, until = 0, monotonic() + TURN_SECONDS
        if not self._stalled:
            taken += task.replay()
        while pending and taken < TURN and not self._stalled and not task.over and monotonic() < until:
            self._process(*pending.take())
            taken += 1
        task.report_arrived()
        taken += task.give() + task.save(behind=bool(pending)) + self._install()
        polled = task.is_source and not self._stalled and self._read()
        self._rest = 0.0
        if polled and self._poll_size.limited:
            task.idle()
        elif taken or (polled and not self._stalled and self._read()):  # rows that are the last for now go on at once
            task.flush_if_due()
        elif not transport.blocked:
            task.idle()
            self._rest = task.sleep_for()

    def _process(self, channel: ChannelId, element: Element) -> None:
        """Process an element, together with the batches right behind it if they are small.

        Batches that the task would keep stay alone: their credit returns when they are processed.
        """
        more = list[Batch]()
        if isinstance(element, Batch) and not self._task.task.keeps(channel) and (more := self._pending.take_more(channel, element)):
            element = Batch.concat([element, *more])
        self._task.receive(channel, element)
        for batch in more:
            self._transport.consumed(channel, batch)

    def _install(self) -> bool:
        """Install some restored state, if it is time to; the last of it makes the tables as large as they were."""
        installed = self._task.install(behind=bool(self._pending))
        if installed and not self._task.task.installing:
            gc.freeze()
        return installed

    def _read(self) -> bool:
        """Poll the source for as many rows as are sent soon; return True if it had any."""
        blocked = self._transport.blocked_seconds
        if blocked > self._blocked_before or not self._task.task.outputs.wait:
            self._poll_size.read(self._rows_read, blocked - self._blocked_before)
            self._rows_read, self._blocked_before = 0, blocked
        rows = self._task.poll(self._poll_size.rows)
        self._rows_read += rows
        return rows > 0 or self._task.over

    @property
    def _stalled(self) -> bool:
        """True if no batch may be processed now: credit is missing, or a reconfiguration paused this task."""
        return self._transport.blocked or self._task.task.outputs.paused

    def _receive(self) -> None:
        """Take what has come; if there was nothing to do, wait for it, and note what the wait was for."""
        transport, meter = self._transport, self._task.meter
        if self._stalled and not self._state:
            with meter.waiting(for_credit=True):
                received = transport.poll(LONGEST_SLEEP)
        elif self._rest > 0.0 and not self._state:
            with meter.waiting(for_credit=False):
                received = self._sleep(min(self._rest, LONGEST_SLEEP))
        else:
            received = transport.poll(0.0)
        for channel, element in received:
            if is_state_channel(channel):
                self._state.append((channel, element))
            else:
                self._pending.put(channel, element)

    def _sleep(self, seconds: float) -> list[tuple[ChannelId, Element]]:
        """Wait for elements, at most so long; a source, which gets none, for its next rows instead, as exactly as the system can.

        A poll of ZeroMQ takes whole milliseconds: rounded up, a source that has rows each millisecond would take them every 1.5.
        """
        if not self._task.is_source:
            return self._transport.poll(seconds)
        if seconds >= POLL_UNIT:
            return self._transport.poll(seconds // POLL_UNIT * POLL_UNIT)
        sleep(seconds)
        return self._transport.poll(0.0)

    def _take_state(self) -> None:
        """Process state for a few milliseconds, before records.

        Two workers that wait for each other's credit must still take each other's state.
        """
        until = monotonic() + STATE_SECONDS
        while self._state and monotonic() < until:
            self._task.receive(*self._state.popleft())

    def _measure(self) -> None:
        rows = [batch.num_rows for batch in self._pending.batches()]
        self._task.measure(len(rows), sum(rows), self._transport.refused, self._transport.blocked_channels)
