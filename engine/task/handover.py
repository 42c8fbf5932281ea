"""The hand-over of keyed state between workers while the stream runs: one worker's part in it.

A step of a migration is identified by its version. Every upstream task switches its routing table between two batches and sends a
marker to the workers that give or take state. For the old owner, a marker on *every* input is the implicit barrier: no more
records of the moving keys can arrive, so it sends their state away, a chunk between two batches. The new owner sets their records
aside from the first marker until the state has arrived, and then processes them in pieces, the older ones first. Meanwhile neither
owner lets an input's event time pass its marker. Windows due before the markers are complete at the old owner, which emits them;
later windows belong to the new owner, which needs the state first. State that overtakes the markers waits for them. So both owners
have the same event time when the state changes hands, and no window is emitted by both or by none. A new owner that holds its event
time back advances to the time of the old owner, which comes with the state. (Mechanism: AutoFlow's control messages; lazy fetching:
Koala, and Meces, ATC 2022.)

A key that begins or ends to be split has several owners at once. So its records are distinguished by the marker of their channel:
records before it are processed at once. Records behind it wait, at the key's home until its copy was sent, because the copy must
hold exactly the state before the markers; at the other workers, and at a home to which dealt rows return, until the state has
arrived.

An input that has ended counts as having every marker.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..batch import Batch
from ..broadcast_rows import is_broadcast
from ..errors import ProtocolError
from ..keyed_state.base import StateTransfer
from ..keys.encoding import key_hashes, key_values
from ..operators.keyed import KeyedInstance
from ..protocol.effects import Sent
from ..protocol.elements import MIN_TIME, Element, FetchReply, FetchRequest, TransferEnd, TransferStart
from ..protocol.handover_step import Arrived, HandoverStep
from ..protocol.ids import NO_STEP, ChannelId, StepVersion, WorkerId, WorkerNumber, index_of
from ..protocol.routing import Hashes, Move, among
from ..protocol.state_channels import state_channel
from .exchange import runs

CHUNK, CHUNK_BYTES = 512, 1 << 18
"""The most keys, and about the most bytes, in a chunk of state, which a worker sends between two batches.

A chunk delays the batches by 1 to 4 ms.
"""

FIRST = 64
"""The keys in a worker's first chunk, before it knows how large states are."""

REPLAYED = 512
"""The records that had been set aside and that a worker processes between two batches, once their state is here."""


@dataclass(slots=True, eq=False)
class _Outgoing:
    """A move away from here; `transfer` is None until the implicit barrier."""

    version: StepVersion
    move: Move
    lazy: bool
    transfer: StateTransfer | None = None
    requests: list[tuple[int, Batch]] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Incoming:
    """A move to this worker. Records set aside are kept by the number of the request that they wait for (0 if it isn't lazy).

    `here`: the keys whose state is here in a lazy move. `ended`: all state is here, and records that had been set aside go first.

    A lazy move has one request in flight at a time (`in_flight`). Keys that are needed meanwhile are `gathered` for the next, so the
    cost of a request is per round trip, not per batch. `early`: elements from the old owner that arrived before the markers, None
    once all markers are here.
    """

    version: StepVersion
    move: Move
    lazy: bool
    aside: dict[int, deque[Batch]] = field(default_factory=dict)
    requested: dict[Any, int] = field(default_factory=dict)
    here: set[Any] = field(default_factory=set)
    requests: int = 0
    in_flight: bool = False
    gathered: list[list[pa.Array]] = field(default_factory=list)
    early: list[Element] | None = field(default_factory=list)
    keys: int = 0
    state_bytes: int = 0
    ended: bool = False


class Handovers:
    """The moves that the worker with this index and number takes part in; `out` takes the elements to send."""

    def __init__(self, index: int, number: WorkerNumber, operator: KeyedInstance, out: list[Sent]) -> None:
        self._index, self._number, self._operator, self._out = index, number, operator, out
        self._to: dict[int, ChannelId] = {}
        """The channels to the workers of the announced moves, by their indexes."""
        self._sender: dict[ChannelId, int] = {}
        """The indexes of the workers at the other ends of the channels from them, also of those that have left meanwhile."""
        self._steps: dict[StepVersion, HandoverStep] = {}
        self._version: StepVersion | None = None
        self._passed: set[int] = set()
        self._begun = NO_STEP
        """The newest step that has begun here."""
        self._left: list[Move] = []
        """The moves of that step whose state has begun to leave."""
        self._outgoing: list[_Outgoing] = []
        self._chunk = min(CHUNK, FIRST)
        """The keys of the next chunk, by the size of the last one."""
        self._incoming: dict[int, _Incoming] = {}
        self._announced: dict[ChannelId, tuple[StepVersion, int]] = {}
        self.came_at = MIN_TIME
        """The latest event time of an old owner whose state has begun to arrive."""
        self._told: set[ChannelId] = set()
        """The channels on which this worker has sent the copy that every worker has."""
        self._waiting: list[Batch] = []
        """The records of keys whose copy has yet to be sent."""

    def announce(self, steps: Iterable[HandoverStep], peers: Mapping[WorkerId, WorkerNumber]) -> None:
        """Note the steps to come, in which this worker exchanges state with `peers`. A marker tells when a step begins."""
        self._steps.update((step.version, step) for step in steps)
        for worker, number in peers.items():
            self._to[index_of(worker)] = state_channel(self._number, number)
            self._sender[state_channel(number, self._number)] = index_of(worker)

    def is_peer(self, channel: ChannelId) -> bool:
        """Return True if the channel is from a worker with which this one exchanges state, or did."""
        return channel in self._sender

    @property
    def holds_time(self) -> bool:
        """True if event time must stop at the markers here."""
        return bool(self._incoming) or (bool(self._outgoing) and any(o.transfer is None for o in self._outgoing))

    @property
    def giving(self) -> bool:
        """True if state is being sent away, between batches."""
        return bool(self._outgoing) and any(o.transfer is not None for o in self._outgoing)

    @property
    def awaited(self) -> bool:
        """True if records wait for the last chunk of state that is being sent away. In a lazy move they wait for their own keys' only."""
        return any(o.transfer is not None and not o.lazy for o in self._outgoing)

    @property
    def replaying(self) -> bool:
        """True if records that had been set aside can be processed."""
        return bool(self._incoming) and any(incoming.ended for incoming in self._incoming.values())

    def replay(self, rows: int) -> tuple[list[Batch], Arrived | None]:
        """Return the next `rows` records that had been set aside, and the move that is over if these are its last ones."""
        source, incoming = next((source, incoming) for source, incoming in self._incoming.items() if incoming.ended)
        aside, batches = incoming.aside[0], list[Batch]()
        while aside and rows > 0:
            batch = aside.popleft()
            if batch.num_rows > rows:
                aside.appendleft(batch.slice(rows, batch.num_rows - rows))
                batch = batch.slice(0, rows)
            rows -= batch.num_rows
            batches.append(batch)
        return joined(batches), None if aside else self._over(source)

    @property
    def taking(self) -> bool:
        """True if state is still to arrive."""
        return bool(self._incoming)

    @property
    def expects_steps(self) -> bool:
        """True if this worker has a part in steps to come, for which no upstream worker waits."""
        return any(not step.pause for step in self._steps.values())

    def unfinished(self) -> list[str]:
        """Return a description of the steps in progress; empty once every step that has begun is over."""
        return [
            *(f"gives keys to worker {o.move.target} in step {o.version}" for o in self._outgoing),
            *(f"takes keys from worker {source} in step {i.version}" for source, i in self._incoming.items()),
            *([f"waits for markers of step {self._version}"] if self._version is not None else []),
        ]

    def holds(self, hashes: Hashes, newest: StepVersion) -> bool:
        """True if all state of the key with this hash, shape (1,), is here. The coordinator has begun step `newest`, and no later one.

        A worker that has begun a later step can't tell, and returns false.
        """
        if self._begun > newest:
            return False
        groups = self._operator.context.key_groups
        coming = [m for s in self._steps.values() if s.version <= newest for m in s.moves if m.target == self._index]
        coming += [incoming.move for incoming in self._incoming.values()]
        return not any(m.brings(hashes, groups).any() for m in coming) and not any(m.selects(hashes, groups).any() for m in self._left)

    def arrived(self, hashes: Hashes, columns: Sequence[pa.Array]) -> bool:
        """True if the state of the key in these key columns has arrived in a lazy move that is not over.

        Otherwise requests it, if it is to arrive so, for the next time that someone asks.
        """
        groups = self._operator.context.key_groups
        for source, incoming in self._incoming.items():
            if incoming.lazy and incoming.move.brings(hashes, groups).any():
                return bool(self._requests(source, incoming, columns)[0] < 0)
        return False

    def marker(self, channel: ChannelId, version: StepVersion) -> None:
        """Note that the marker of step `version` has arrived on an input."""
        if version != self._version:
            self._begin(version)
        self._passed.add(channel)

    def pass_barrier(self, live: Mapping[ChannelId, int], watermark: int) -> list[tuple[int, Element]]:
        """Begin to send the moving state if the marker has arrived on every input that has not ended (`live`): the implicit barrier.

        `watermark`: the worker's event time.

        Returns the elements that arrived early, each with the worker that sent it, for `state_element`.
        """
        if self._version is None or not self._passed.issuperset(live):
            return []
        self._version = None
        for outgoing in self._outgoing:
            if outgoing.transfer is None:
                self._left.append(outgoing.move)
                self._operator.pending.leave(outgoing.move, self._operator.context.key_groups)
                outgoing.transfer = self._operator.state.depart(outgoing.move)
                self._out.append(Sent(self._to[outgoing.move.target], TransferStart(outgoing.version, watermark)))
                self._give_copies(outgoing.move.target)
                requests, outgoing.requests = outgoing.requests, []
                for number, keys in requests:
                    self._answer(outgoing, number, keys)
        early = []
        for source, incoming in self._incoming.items():
            early += [(source, element) for element in incoming.early or ()]
            incoming.early = None
        return early

    def give_some(self, *, everything: bool = False) -> None:
        """Send a chunk of a move that is past its barrier, of each in turn, or all remaining state."""
        begun = [o for o in self._outgoing if o.transfer is not None]
        for outgoing in begun if everything else begun[:1]:
            self._outgoing.remove(outgoing)
            if not self._give(outgoing, everything=everything):
                self._outgoing.append(outgoing)

    def released(self) -> list[Batch]:
        """Return the records that waited until copies of their keys' state were sent, once the implicit barrier is passed."""
        if self._version is not None:
            return []
        batches, self._waiting = self._waiting, []
        return joined(batches)

    def split(self, channel: ChannelId, batch: Batch) -> Batch | None:
        """Return the rows that can be processed now. Set the others aside, and in a lazy move request their keys' state."""
        copying = self._version is not None and any(outgoing.move.copies for outgoing in self._outgoing)
        if not (self._incoming or copying) or not self._operator.needs_state:
            return batch
        return self._split(batch, behind=channel in self._passed)

    def _split(self, batch: Batch, *, behind: bool) -> Batch | None:
        """Split a batch; `behind`: it arrived behind its channel's marker."""
        hashes = key_hashes(self._operator.key_columns(batch.rows), self._operator.context.name)
        ready = np.ones(batch.num_rows, np.bool_)
        for source, incoming in self._incoming.items():
            moving = incoming.move.brings(hashes, self._operator.context.key_groups)
            if behind:
                moving |= among((*incoming.move.copies, *incoming.move.returns), hashes)
            moving &= ready
            if moving.any():
                where = np.flatnonzero(moving)
                ready[where] = self._set_aside(source, incoming, batch, where)
        if behind:
            copied = among([part for o in self._outgoing if o.transfer is None for part in o.move.copies], hashes) & ready
            if copied.any():
                self._waiting.append(batch.filter(copied))
                ready &= ~copied
        return batch if ready.all() else batch.filter(ready) if ready.any() else None

    def peer_element(self, channel: ChannelId, element: Element) -> tuple[list[Batch], Arrived | None]:
        """Handle an element from a peer. A late request of one that has left refers to no step, and is ignored.

        Returns the batches that no longer need to be set aside, and the move that has arrived completely.
        """
        source = self._sender[channel]
        if isinstance(element, FetchRequest):
            self._announced[channel] = element.version, element.number
        elif isinstance(element, Batch) and channel in self._announced:
            self._requested(source, *self._announced.pop(channel), element)
        else:
            return self.state_element(source, element)
        return [], None

    def state_element(self, source: int, element: Element) -> tuple[list[Batch], Arrived | None]:
        """Handle an element of a move from worker `source` to this one, as `peer_element`; keep it until the barrier is passed."""
        if isinstance(element, TransferStart) and element.version != self._version and source not in self._incoming:
            self._begin(element.version)
        incoming = self._incoming.get(source)
        if incoming is not None and incoming.early is not None:
            incoming.early.append(element)
        elif isinstance(element, Batch):
            self._install(source, element)
        elif isinstance(element, FetchReply):
            return self._answered(source, element), None
        elif isinstance(element, TransferEnd):
            return self._handed(source, element.version)
        elif isinstance(element, TransferStart):
            self.came_at = max(self.came_at, element.watermark)
        else:
            raise ProtocolError(f"worker {source} sent a {type(element).__name__} on a channel for state")
        return [], None

    def _begin(self, version: StepVersion) -> None:
        step = self._steps.pop(version, None)
        if step is None:
            raise ProtocolError(f"operator `{self._operator.context.name}`: a marker of step {version}, which was not announced")
        self._version, self._passed = version, set()
        self._begun, self._left = version, []
        for move in step.moves:
            if move.source == self._index:
                self._outgoing.append(_Outgoing(version, move, step.lazy))
            if move.target == self._index:
                self._incoming[move.source] = _Incoming(version, move, step.lazy)
                self._operator.state.expect(move)

    def _give_copies(self, target: int) -> None:
        """Send the copy that every worker has with the first keys that a worker gets: it may have joined."""
        channel = self._to[target]
        if channel not in self._told:
            self._told.add(channel)
            self._out.extend(Sent(channel, chunk) for chunk in self._operator.state.copies())

    def _give(self, outgoing: _Outgoing, *, everything: bool) -> bool:
        """Send a chunk's worth, or everything. Return True if nothing is left."""
        channel = self._to[outgoing.move.target]
        assert outgoing.transfer is not None
        left = self._chunk
        while left > 0 or everything:
            chunk = outgoing.transfer.next_chunk(max(1, left))
            if chunk is None:
                self._out.append(Sent(channel, TransferEnd(outgoing.version)))
                return True
            self._out.append(Sent(channel, chunk))
            left -= max(1, chunk.num_rows)
            if chunk.num_rows:
                size = chunk.rows.nbytes  # without the rest of buffers that it shares
                self._chunk = min(CHUNK, max(1, CHUNK_BYTES * chunk.num_rows // max(1, size)))
        return False

    def _requested(self, source: int, version: StepVersion, number: int, keys: Batch) -> None:
        """Handle worker `source`'s request for keys, which may arrive before any marker; it is answered once the barrier is
        passed.
        """
        if version in self._steps:
            self._begin(version)
        for outgoing in self._outgoing:
            if outgoing.version == version and outgoing.move.target == source:
                if outgoing.transfer is None:
                    outgoing.requests.append((number, keys))
                else:
                    self._answer(outgoing, number, keys)

    def _answer(self, outgoing: _Outgoing, number: int, keys: Batch) -> None:
        channel = self._to[outgoing.move.target]
        chunks = outgoing.transfer.fetch(keys.rows.columns) if outgoing.transfer is not None else ()
        self._out.extend(Sent(channel, chunk) for chunk in chunks)
        self._out.append(Sent(channel, FetchReply(outgoing.version, number)))

    def _set_aside(self, source: int, incoming: _Incoming, batch: Batch, where: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
        """Set the rows `where` in a batch aside: they have moving keys. Return a mask of those whose keys' state is here already."""
        if not incoming.lazy:
            incoming.aside.setdefault(0, deque()).append(batch.take(where))
            return np.zeros(len(where), np.bool_)
        rows = pa.array(where)
        by_row = self._requests(source, incoming, [column.take(rows) for column in self._operator.key_columns(batch.rows)])
        for number in sorted(set(by_row.tolist())):
            if number >= 0:
                incoming.aside.setdefault(number, deque()).append(batch.take(where[by_row == number]))
        here: npt.NDArray[np.bool_] = by_row < 0
        return here

    def _requests(self, source: int, incoming: _Incoming, columns: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
        """Return the number of the request for the key in each row of these key columns, -1 if its state is here.

        Requests the keys that were not requested.
        """
        here, requested, now = incoming.here, incoming.requested, incoming.requests
        numbers, asking = list[int](), list[int]()
        for place, key in enumerate(key_values(columns)):  # few: the moving keys of a batch
            number = -1 if key in here else requested.get(key)
            if number is None:
                number = requested[key] = now
                asking.append(place)
            numbers.append(number)
        if asking:
            incoming.gathered.append([column.take(pa.array(asking)) for column in columns])
            self._ask(source, incoming)
        return np.array(numbers, np.int64)

    def _ask(self, source: int, incoming: _Incoming) -> None:
        """Request the gathered keys, unless a request is in flight."""
        if incoming.in_flight or not incoming.gathered:
            return
        channel, gathered = self._to[source], incoming.gathered
        batches = [Batch(pa.RecordBatch.from_arrays(columns, names=list(self._operator.keys))) for columns in gathered]
        self._out.append(Sent(channel, FetchRequest(incoming.version, incoming.requests)))
        self._out.append(Sent(channel, Batch.concat(batches)))
        incoming.requests, incoming.in_flight, incoming.gathered = incoming.requests + 1, True, []

    def _install(self, source: int, state: Batch) -> None:
        incoming = self._incoming_from(source)
        self._operator.state.install(state)
        if not is_broadcast(state.rows.schema):
            incoming.keys += state.num_rows
            if incoming.lazy and self._operator.state.whole_keys:
                # Records of a requested key wait for the answer: later ones must not overtake them.
                incoming.here |= set(key_values(self._operator.key_columns(state.rows))).difference(incoming.requested)
        incoming.state_bytes += state.nbytes

    def _answered(self, source: int, answer: FetchReply) -> list[Batch]:
        incoming = self._incoming.get(source)
        if incoming is None or incoming.version != answer.version:
            return []
        incoming.here.update(key for key, number in incoming.requested.items() if number == answer.number)
        incoming.requested = {key: number for key, number in incoming.requested.items() if number != answer.number}
        incoming.in_flight = False
        self._ask(source, incoming)
        return joined(incoming.aside.pop(answer.number, ()))

    def _handed(self, source: int, version: StepVersion) -> tuple[list[Batch], Arrived | None]:
        incoming = self._incoming_from(source)
        if incoming.version != version:
            raise ProtocolError(f"worker {source} has handed over step {version}, expected step {incoming.version}")
        if incoming.aside and not (incoming.lazy or incoming.move.returns):
            incoming.ended = True
            return [], None
        arrived = self._over(source)
        batches = joined([batch for _, batches in sorted(incoming.aside.items()) for batch in batches])
        if incoming.move.returns:  # rows of a key that several workers return wait for the next worker
            batches = [ready for batch in batches if (ready := self._split(batch, behind=True)) is not None]
        return batches, arrived

    def _over(self, source: int) -> Arrived:
        incoming = self._incoming.pop(source)
        return Arrived(incoming.version, source, incoming.keys, incoming.state_bytes)

    def _incoming_from(self, source: int) -> _Incoming:
        incoming = self._incoming.get(source)
        if incoming is None:
            raise ProtocolError(
                f"operator `{self._operator.context.name}`: state arrived from worker {source}, from which none is expected"
            )
        return incoming


def joined(batches: Iterable[Batch]) -> list[Batch]:
    """Return the same rows in the same order, in as few batches as their columns allow.

    Rows are set aside in small pieces.
    """
    return [Batch.concat(run) for run in runs(batches)]
