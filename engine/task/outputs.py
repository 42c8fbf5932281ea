"""The outputs of a task: its exchanges, and the elements that are sent through them.

Invariant: elements leave in the order in which they were sent, over all exchanges.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from ..batch import Batch
from ..errors import ProtocolError
from ..plan.task_spec import ExchangeSpec, TaskSpec
from ..protocol.effects import Effect, Sent
from ..protocol.elements import Element, End, LatencyMark
from ..protocol.handover_step import HandoverStep
from ..protocol.ids import ChannelId, StepVersion
from .exchange import BroadcastExchange, Exchange, KeyedExchange, RebalanceExchange
from .hash_exchange import HashExchange
from .time_domains import TASK, TimeDomains


class Outputs:
    """The exchanges of a task. `sent`: the elements to send; `now`: seconds, set before each event of the task; `linger`: seconds
    that a row waits at most.
    """

    def __init__(self, spec: TaskSpec) -> None:
        self._spec = spec
        self.linger = spec.settings.linger
        self.exchanges = [_exchange(spec, exchange) for exchange in spec.exchanges]
        self._domains = TimeDomains(spec).of_exchanges
        self.sent: list[Sent] = []
        self.now = 0.0
        self.rows = 0
        """Rows that have left."""
        self._steps: dict[StepVersion, tuple[HandoverStep, list[KeyedExchange]]] = {}

    def entrance(self, position: int) -> Callable[[Batch], None]:
        """Return a function that pushes batches into the exchange at `position`."""
        exchange = self.exchanges[position]
        return lambda batch: exchange.push(batch, self.now, self.sent)

    def take(self, effects: list[Effect]) -> None:
        """Append the sent elements to the other effects."""
        if self.sent:
            for sent in self.sent:
                if isinstance(sent.element, Batch):
                    self.rows += sent.element.num_rows
            effects.extend(self.sent)
            self.sent.clear()

    def advance(self, watermark: int, domain: int = TASK) -> None:
        """Advance event time to `watermark` in a domain; it is sent behind the rows before it."""
        for exchange, own in zip(self.exchanges, self._domains, strict=True):
            if own == domain:
                exchange.advance(watermark)

    def mark(self, mark: LatencyMark) -> None:
        """Pass a latency mark on."""
        for exchange in self.exchanges:
            exchange.mark(mark, self.sent)

    def broadcast(self, element: Element) -> None:
        """Send a signal on every channel, behind everything before it."""
        for exchange in self.exchanges:
            exchange.broadcast(element, self.sent)

    def rewind(self, times: Mapping[int, int]) -> None:
        """Continue event time from these times, by domain, which may be earlier than the watermarks that were sent."""
        for exchange, domain in zip(self.exchanges, self._domains, strict=True):
            exchange.rewind(times[domain], self.sent)

    def flush(self) -> None:
        """Send everything that waits."""
        for exchange in self.exchanges:
            exchange.flush(self.sent)

    def attach(self, channels: Sequence[tuple[int, int, ChannelId]], *, ends: bool) -> None:
        """Add channels to workers that join, each with its exchange and its place there, or end them at once."""
        for position, place, channel in channels:
            if ends:
                self.sent.append(Sent(channel, End()))
            else:
                self.exchanges[position].attach(place, channel, self.sent)

    def detach(self, channels: Collection[ChannelId]) -> None:
        """End the channels to workers that leave."""
        for exchange in self.exchanges:
            exchange.detach(channels, self.sent)

    def announce(self, stage: str, steps: Iterable[HandoverStep]) -> None:
        """Note steps of a reconfiguration of `stage` that may follow."""
        pairs = zip(self._spec.exchanges, self.exchanges, strict=True)
        to_stage = [exchange for spec, exchange in pairs if spec.target == stage and isinstance(exchange, KeyedExchange)]
        if to_stage:
            self._steps.update((step.version, (step, to_stage)) for step in steps)

    def switch(self, version: StepVersion) -> None:
        """Route by the table after step `version` from here on. Raises ProtocolError for an unannounced step."""
        if version not in self._steps:
            raise ProtocolError(f"task {self._spec.name}: step {version} was not announced")
        step, exchanges = self._steps.pop(version)
        for exchange in exchanges:
            exchange.switch(step, self.sent)

    def resume(self) -> None:
        """Continue after a step that paused the task."""
        for exchange in self.exchanges:
            exchange.paused = False

    @property
    def paused(self) -> bool:
        """True if the task must not process anything until `resume`."""
        for exchange in self.exchanges:  # noqa: SIM110 -- called after every step; a generator would cost three times as much
            if exchange.paused:
                return True
        return False

    @property
    def wait(self) -> bool:
        """True if a buffer holds rows or signals."""
        for exchange in self.exchanges:  # noqa: SIM110 -- as `paused`
            if exchange.waits:
                return True
        return False

    def due(self, now: float) -> bool:
        """Return True if a row has waited for longer than `linger`."""
        for exchange in self.exchanges:
            since = exchange.waiting_since
            if since is not None and now - since >= self.linger:
                return True
        return False


def _exchange(spec: TaskSpec, exchange: ExchangeSpec) -> Exchange:
    batch_rows = spec.settings.batch_rows
    if exchange.keys is not None and exchange.table is not None:
        operator = spec.chain[exchange.source[0]].name
        return HashExchange(exchange.channels, batch_rows, operator, exchange.keys, exchange.table, tells_columns=exchange.tells_columns)
    if exchange.to_all:
        return BroadcastExchange(exchange.channels, batch_rows, untimed=exchange.untimed)
    return RebalanceExchange(exchange.channels, batch_rows)
