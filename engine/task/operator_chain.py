"""The operators of a task: a tree of chained operators whose leaves are the outputs.

Invariant: an operator's batches reach the next ones in the order in which it emitted them, before any watermark that it emitted
later, and each is processed before the operator continues; but in a long chain every `DEPTH`-th operator takes its batches only
when the one that emitted them has returned, so that Python's stack holds a chain of any length. Operators behind one with a
watermark of its own see that operator's watermark, and never the task's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa

from ..batch import Batch, NoPythonValueError
from ..broadcast_rows import is_broadcast
from ..context import Context, Emit
from ..dropped_records import DroppedRecord, Sample
from ..errors import RecordError
from ..functions.error_policy import DEAD_LETTERS
from ..functions.measures import Measured
from ..keys.encoding import key_hashes
from ..keys.load import KeyLoad
from ..operators.base import OperatorInstance
from ..operators.keyed import KeyedInstance
from ..operators.own_time import OwnTime
from ..operators.own_watermark import OwnWatermarkInstance
from ..operators.rows.write import WriteInstance
from ..operators.two_inputs import LATE
from ..plan.task_spec import TaskSpec
from ..protocol.effects import OperatorProblem, Work, WorkOutcome
from ..protocol.elements import MAX_TIME, MIN_TIME
from ..protocol.ids import CheckpointNumber
from ..types.exact import Inexact, NoCommonType
from ..types.views import without_views
from .outputs import Outputs
from .restored_types import RestoredTypes
from .time_domains import TASK, TimeDomains

LATE_PORTS = frozenset(("late", *LATE.values()))
"""The ports of late rows."""

DEPTH = 64
"""The number of operators that call each other; the next one is called when they have returned.

Each takes at least three frames of Python's stack.
"""

OF_VALUES = (NoPythonValueError, NoCommonType, Inexact)
"""Errors of values and columns, which don't name the operator."""

TICK = 0.05
"""The least seconds between two ticks of operators that count by the clock, while no input arrives."""


class OperatorChain:
    """The open operators of a task, the first one first.

    There are fewer than in the plan if one could not be opened; a job that ends by that is measured and closed too.
    """

    def __init__(self, spec: TaskSpec, load: KeyLoad, outputs: Outputs, epoch: int = 0) -> None:
        self._spec, self._load, self._outputs, self._epoch = spec, load, outputs, epoch
        self._domains = TimeDomains(spec)
        self._clocked = [at for at, chained in enumerate(spec.chain) if chained.operator.ticks]
        self._assigning = [at for at in self._domains.reached if isinstance(spec.chain[at].operator, OwnTime)]
        self._background = [at for at, chained in enumerate(spec.chain) if chained.operator.has_background_work]
        self.has_background_work = bool(self._background)
        """True if an operator may have background work."""
        self.ticks = bool(self._clocked or self._background)
        """True if an operator counts by the clock."""
        self._ticked = -TICK
        self.operators: list[OperatorInstance] = []
        self.restored_types = RestoredTypes()
        self._restored = False
        """True while rows must be checked against restored state, or need state that is not installed."""
        self._emitters = [_Emitter(chained.name) for chained in spec.chain]
        self._refused = Sample()
        self._put_off = deque[Callable[[], None]]()
        """Steps to take, in order, once the running operators have returned."""
        depths: list[int] = []
        for position, chained in enumerate(spec.chain):
            depths.append(1 + max((depths[source] for source, _ in chained.inputs), default=0))
            take = self._take_later if depths[position] % DEPTH == 0 else self._take
            for source, port in chained.inputs:
                self._emitters[source].add(port, partial(take, position))
        for position, exchange in enumerate(spec.exchanges):
            source, port = exchange.source
            self._emitters[source].add(port, outputs.entrance(position))

    def open(self) -> None:
        """Open the operators, the first one first; called once. Raises the error of an operator that can't be opened."""
        spec, settings = self._spec, self._spec.settings
        for chained in spec.chain:
            context = Context(chained.name, spec.index, spec.parallelism, settings.key_groups, self._load, settings.state, self._now)
            self.operators.append(chained.operator.open(context))

    def close(self) -> None:
        """Close the operators; called once at the end, also after an error."""
        for operator in self.operators:
            operator.close()

    @property
    def keyed(self) -> KeyedInstance | None:
        """Return the operator with keyed state: the first of the chain, if any."""
        head = self.operators[0]
        return head if isinstance(head, KeyedInstance) else None

    def process(self, position: int, batch: Batch) -> None:
        """Pass a batch to the operator at `position`. Raises RecordError if a user's function fails."""
        self._take(position, batch)
        self._catch_up()

    def _take(self, position: int, batch: Batch) -> None:
        if self._restored and not position and self.keyed is not None and not is_broadcast(batch.rows.schema):
            self._prepare(self.keyed, batch.rows)
        try:
            self.operators[position].process(batch, self._emitters[position])
        except OF_VALUES as error:
            raise self._named(position, error) from error
        if self._domains.reached and position in self._domains.reached:
            if self._put_off:  # some of these are its own batches
                self._put_off.append(partial(self._go_on, position))
            else:
                self._go_on(position)

    def _prepare(self, keyed: KeyedInstance, rows: pa.RecordBatch) -> None:
        """Check the keys of rows against the restored ones, and install the state of theirs."""
        if self.restored_types.waits:
            self.restored_types.check(keyed, rows)
        if keyed.pending.left:
            keyed.pending.need(key_hashes(keyed.key_columns(rows), keyed.context.name))
        self._restored = self.restored_types.waits or keyed.pending.left > 0

    def restored(self) -> None:
        """Note that all chunks of a checkpoint's state are here."""
        self._restored = True
        if self.keyed is not None:
            self.keyed.pending.begin()

    def _named(self, position: int, error: Exception) -> RecordError:
        """Return an error of a value as one of the operator at `position`."""
        advice = "" if isinstance(error, NoPythonValueError) else ": give the column one type, for example by cast or schema="
        return RecordError(self._spec.chain[position].name, f"{error}{advice}")

    def _take_later(self, position: int, batch: Batch) -> None:
        self._put_off.append(partial(self._take, position, batch))

    def _catch_up(self) -> None:
        """Take all postponed steps; those that a step adds come before the next."""
        while self._put_off:
            step, rest = self._put_off.popleft(), self._put_off
            self._put_off = deque()
            step()
            self._put_off += rest

    def emit_dead_letters(self, letters: Batch) -> None:
        """Emit the dead letters of the source."""
        self._refused.add_letters(letters)
        self._emitters[0](letters, DEAD_LETTERS)
        self._catch_up()

    def advance(self, watermark: int, domain: int = TASK) -> None:
        """Advance event time to `watermark` in a domain: timers are due, windows are complete."""
        for position in self._domains.operators(domain):
            try:
                self.operators[position].advance(watermark, self._emitters[position])
            except OF_VALUES as error:
                raise self._named(position, error) from error
            self._catch_up()
            if position in self._domains.reached:
                self._go_on(position)

    def settle(self) -> None:
        """Emit the rows that operators hold back: a barrier or a move of keys follows."""
        for position in self._domains.reached:
            self._run(position, self._own(position).settle)

    def finish(self) -> None:
        """Emit the remaining results: the inputs have ended."""
        if self.keyed is not None:
            self.keyed.pending.everything()
        for position, operator in enumerate(self.operators):
            try:
                operator.finish(self._emitters[position])
            except OF_VALUES as error:
                raise self._named(position, error) from error
            self._catch_up()
            if position in self._domains.reached:
                self._rise(position, MAX_TIME)

    @property
    def own_times(self) -> dict[str, int]:
        """Return the watermark of each operator with an event time of its own, by name."""
        return {self._spec.chain[position].name: self._domains.reached[position] for position in self._assigning}

    def restore(self, own_times: Mapping[str, int]) -> None:
        """Continue from a checkpoint at these times."""
        for position in self._assigning:
            time = own_times.get(self._spec.chain[position].name, MIN_TIME)
            self._own(position).restore(time)
            self._rise(position, time)

    def rewind(self, time: int, own_times: Mapping[str, int]) -> dict[int, int]:
        """Continue with records that are no earlier than `time`. Return the new watermark of each domain."""
        self.settle()
        for position in self._domains.reached:
            self._own(position).rewind()
            begins = own_times.get(self._spec.chain[position].name, MIN_TIME) if position in self._assigning else time
            self._domains.reached[position] = begins
        return {TASK: time, **self._domains.reached}

    @property
    def next_tick(self) -> float | None:
        """Return the time, by the task's clock, from which `tick` tells the operators the time; None if none counts by the clock."""
        return self._ticked + TICK if self._clocked else None

    def tick(self) -> None:
        """Tell operators that count by the clock the time, no more often than every `TICK` seconds."""
        if self._outputs.now - self._ticked >= TICK:
            self._ticked = self._outputs.now
            for position in self._clocked:
                self._run(position, self.operators[position].tick)

    def background_work(self) -> Iterator[Work | OperatorProblem]:
        """Yield the operators' work for other threads, and reports about work that takes too long."""
        for position in self._background:
            operator = self.operators[position]
            problem, work = operator.overdue(), operator.background_work()
            if problem is not None:
                yield OperatorProblem(operator.context.name, problem)
            if work is not None:
                yield Work(position, work)

    def work_ended(self, position: int, outcome: WorkOutcome) -> OperatorProblem | None:
        """Pass the outcome of its background work to the operator at `position`; return a report if it failed."""
        operator = self.operators[position]
        operator.work_ended()
        if outcome.error is None:
            operator.work_result(outcome.result)
            return None
        return OperatorProblem(operator.context.name, operator.work_failed(outcome.error))

    def _own(self, position: int) -> OwnWatermarkInstance:
        operator = self.operators[position]
        assert isinstance(operator, OwnWatermarkInstance)
        return operator

    def _run(self, position: int, step: Callable[[Emit], None]) -> None:
        """Take a step of an operator, and pass on what it emits, then its watermark if it has one of its own."""
        try:
            step(self._emitters[position])
        except OF_VALUES as error:
            raise self._named(position, error) from error
        self._catch_up()
        if position in self._domains.reached:
            self._go_on(position)

    def _go_on(self, position: int) -> None:
        self._rise(position, self._own(position).watermark)

    def _rise(self, domain: int, watermark: int) -> None:
        if self._domains.rises(domain, watermark):
            self.advance(watermark, domain)
            self._outputs.advance(watermark, domain)

    def _now(self) -> int:
        return self._epoch + round(self._outputs.now * 1_000_000)

    def prepare(self, checkpoint: CheckpointNumber) -> dict[str, list[Any]]:
        """Return the committables of each sink since the last checkpoint, to be committed with `checkpoint`."""
        return {o.context.name: o.prepare(checkpoint) for o in self.operators if isinstance(o, WriteInstance)}

    @property
    def late_records(self) -> int:
        """Return the number of records that arrived after their windows were emitted."""
        return sum(operator.late_records for operator in self.operators)

    @property
    def skipped_records(self) -> int:
        """Return the number of records that a user's function refused without stopping the job."""
        return sum(operator.skipped_records for operator in self.operators)

    def measured(self) -> tuple[Measured, ...]:
        """Return the readings of the metrics of users' functions."""
        return tuple(chain.from_iterable(operator.measured() for operator in self.operators))

    def take_dropped_records(self) -> tuple[DroppedRecord, ...]:
        """Return some of the refused and late records since the last call."""
        late = (emitter.late.take() for emitter in self._emitters)
        refused = (operator.take_refused() for operator in self.operators)
        return tuple(chain.from_iterable((self._refused.take(), *refused, *late)))

    @property
    def state_bytes(self) -> int:
        """Return an estimate of the bytes of keyed state."""
        return sum(o.state.nbytes + o.pending.nbytes for o in self.operators if isinstance(o, KeyedInstance))


class _Emitter:
    """The `Emit` of one operator of the chain. `late`: a sample of the late rows that it emitted.

    Streams have no columns of views, whether a source, a user's function or an expression made them: texts and bytes are plain.
    """

    __slots__ = ("_consumers", "_operator", "_schema", "late")

    def __init__(self, operator: str) -> None:
        self._operator, self.late = operator, Sample()
        self._schema: pa.Schema | None = None
        """The newest schema that has no views."""
        self._consumers: dict[str, list[Callable[[Batch], None]]] = {}

    def add(self, port: str, consumer: Callable[[Batch], None]) -> None:
        self._consumers.setdefault(port, []).append(consumer)

    def __call__(self, batch: Batch, port: str = "out") -> None:
        if self._schema is None or not batch.rows.schema.equals(self._schema):
            batch = batch.with_rows(without_views(batch.rows))
            self._schema = batch.rows.schema
        if port in LATE_PORTS:
            self.late.add_late(self._operator, batch)
        for consumer in self._consumers.get(port, ()):
            consumer(batch)
