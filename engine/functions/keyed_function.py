"""The base classes `KeyedFunction` and `CoKeyedFunction` for `.process(...)` and `.co_process(...)`: functions with states and
timers.

An instance keeps no state itself: before every call the operator binds it to the record of the current key.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Generic, Literal, get_args

from typing_extensions import TypeVar

from ..errors import FlowError
from ..keyed_state.kinds.key_record import KeyRecord
from ..keyed_state.kinds.timers import Timers
from ..protocol.elements import MIN_TIME
from ..time.datetimes import as_datetime, as_microseconds
from ..time.duration import Duration, microseconds
from ..time.event_time import EARLIEST, LATEST
from .declared_states import states_of
from .measures import FunctionContext

R = TypeVar("R", default=dict[str, Any])
"""The rows of the stream: dicts, or objects of its class."""


TimeDomain = Literal["event", "processing"]
"""The clock of a timer: event time, or processing time, which is the clock of the worker."""


class KeyContext:
    """The context of a call: event time, watermark, the worker's clock, and the current key's timers."""

    __slots__ = ("_broadcast", "_domain", "_ended", "_key", "_now", "_processing_timers", "_record", "_time", "_timers", "_watermark")

    def __init__(self, timers: Timers, processing_timers: Timers, now: Callable[[], int]) -> None:
        self._timers, self._processing_timers, self._now = timers, processing_timers, now
        self._time: int | None = None
        self._watermark = MIN_TIME
        self._ended = False
        self._domain: TimeDomain | None = None
        self._broadcast: Mapping[Any, Mapping[str, Any]] | None = None

    @property
    def broadcast(self) -> Mapping[Any, Mapping[str, Any]]:
        """The newest row of each key of the broadcast stream, for reading, in the order in which the keys came.

        A key is a tuple if there are several key columns. Raises ValueError without a broadcast stream.
        """
        if self._broadcast is None:
            raise ValueError('context.broadcast needs a broadcast stream: call .process(function, rules.broadcast("name"))')
        return self._broadcast

    @property
    def time(self) -> datetime:
        """The event time of the row, or the timer's, in UTC. Raises ValueError without event time.

        For a processing-time timer it is the event time of the call that set the timer, or the watermark if that is later.
        """
        if self._time is None:
            raise ValueError("context.time needs event time: give the source event_time=")
        return as_datetime(self._time)

    @property
    def watermark(self) -> datetime | None:
        """The time in UTC that no later record is earlier than; None before the first. At the end of the stream, the last time
        that there is.

        It differs from run to run, and so do results that depend on it.
        """
        return None if self._watermark == MIN_TIME else as_datetime(self._watermark)

    @property
    def now(self) -> datetime:
        """The processing time: the worker's clock, in UTC, when it began with this batch of rows or with the timers that are due.

        It never goes back in a worker, and clocks of several machines differ. Results that depend on it differ from run to run.
        """
        return as_datetime(self._now())

    @property
    def time_domain(self) -> TimeDomain | None:
        """`"event"` or `"processing"` in `on_timer`: the kind of timer that fires, set by `timer` or `timer_after`; None for a row."""
        return self._domain

    @property
    def ended(self) -> bool:
        """True if the stream has ended. Timers set now still fire, so a timer that sets itself again must check this."""
        return self._ended

    def timer(self, at: datetime | str) -> datetime:
        """Schedule a call to `on_timer` for this key, when the watermark passes `at`, or at the end; return that time.

        `at` is a datetime, without a zone in UTC, or a duration from `context.time` on, such as "10m". A key has at most one timer for
        a time. A timer for a time that the watermark has passed fires when the watermark next rises. Raises ValueError without event
        time and outside of the years 1 to 9999, FlowError for a text that is no duration.
        """
        if self._time is None:
            raise ValueError("a timer needs event time: give the source event_time=")
        time = self._time + microseconds(at, "timer") if isinstance(at, str) else _checked(at)
        if time > LATEST:
            raise ValueError(f"timer({at!r}): the timer would fire after the year 9999")
        if time not in self._record.timers:
            self._record.timers.add(time)
            self._timers.add(time, self._key)
        return as_datetime(time)

    def timer_after(self, delay: Duration) -> datetime:
        """Schedule a call to `on_timer` for this key when the worker's clock has reached `now` plus `delay`; return that time.

        Works without event time, and fires on a stream that is quiet. At the end of the stream all remaining timers fire, earlier than
        planned. The timer is part of checkpoints and moves with its key: after a recovery it fires at once if it was due meanwhile.
        Calls in one batch with the same delay have the same time, and set one timer. Raises FlowError for a `delay` that is not
        longer than zero.
        """
        wait = microseconds(delay, "timer_after: delay")
        if wait == 0:
            raise FlowError(f"timer_after({delay!r}): the delay must be longer than zero")
        at = self._now() + wait
        if at > LATEST:
            raise FlowError(f"timer_after({delay!r}): the timer would fire after the year 9999")
        if at not in self._record.processing_timers:
            self._record.processing_timers[at] = self._time
            self._processing_timers.add(at, self._key)
        return as_datetime(at)

    def cancel(self, at: datetime, *, time_domain: TimeDomain = "event") -> None:
        """Cancel the timer of this key at `at`, if there is one; `time_domain="processing"` for a time that `timer_after` returned."""
        time = _checked(at)
        if time_domain == "event":
            self._record.timers.discard(time)
        elif time_domain == "processing":
            self._record.processing_timers.pop(time, None)
        else:
            raise FlowError(f"cancel(time_domain={time_domain!r:.200}): expected {' or '.join(map(repr, get_args(TimeDomain)))}")

    def bind(self, key: Any, record: KeyRecord, time: int | None, domain: TimeDomain | None = None) -> None:
        """Bind the context to a key's record. Called before each call of the function; `domain`: that of a timer that fires."""
        self._key, self._record, self._time, self._domain = key, record, time, domain

    def read_broadcast(self, rows: Mapping[Any, Mapping[str, Any]]) -> None:
        """Give access to the rows of a broadcast stream. Called once, before the first call of the function."""
        self._broadcast = rows

    def advance(self, watermark: int) -> None:
        """Take a new watermark, in microseconds. Called before each call of the function."""
        self._watermark = watermark

    def end(self) -> None:
        """Note that the stream has ended."""
        self._ended = True


class TimedFunction(ABC):
    """The base of functions with states, declared as class attributes, and timers, for any number of inputs."""

    current: tuple[KeyRecord, int | None]
    """The record of the current key, and the event time: the states read and write these."""

    state_version: int = 1
    """The version of the states' shape. Raise it, and define `migrate_state`, when code must convert the states that older code saved."""

    def migrate_state(self, version: int, state: dict[str, Any]) -> dict[str, Any]:
        """Convert the states of a key, `state`, values by name, which code with the older `state_version` `version` wrote.

        Called once for each key, when its state is restored, or arrives from a worker that runs the older code. Objects of declared types
        are dicts by field in `state`; return those, or objects. A state that you don't return is forgotten; timers stay.
        """
        raise NotImplementedError(f"{type(self).__name__} has no migrate_state(self, version, state)")

    def on_timer(self, key: Any, time: datetime, context: KeyContext) -> Iterable[Any] | None:
        """Yield rows when the watermark passes the `time` of an event-time timer, or the clock reaches that of a processing-time timer.

        `context.time_domain` tells which of the two fires. The timers of each fire by time, then in the order in which they were set.
        """
        raise NotImplementedError(f"{type(self).__name__} sets timers: it must define on_timer(self, key, time, context)")

    def open(self, context: FunctionContext) -> None:
        """Set up what the function needs: called once in each worker, before the first row, with the function's metrics.

        States can't be read here, since there is no key.
        """

    def close(self) -> None:
        """Release what `open` set up: called once in each worker, when the job ends or the worker leaves."""

    @classmethod
    def declared_states(cls) -> dict[str, str]:
        """Return the kind of each state, by its name."""
        return {name: state.kind for name, state in states_of(cls).items()}

    @classmethod
    def lives(cls) -> dict[str, int]:
        """Return the time to live, in microseconds, of each state that has one."""
        return {name: state.ttl for name, state in states_of(cls).items() if state.ttl is not None}


class KeyedFunction(TimedFunction, Generic[R]):
    """A function of the rows of a key with states, declared as class attributes, and timers. `R`: the rows, dicts by default.

    >>> import evenflow as ef
    >>> from datetime import timedelta
    >>> class PerMinute(ef.KeyedFunction):
    ...     clicks = ef.map_state()
    ...     def on_row(self, key, row, context):
    ...         minute = context.time.replace(second=0, microsecond=0) + timedelta(minutes=1)
    ...         self.clicks[minute] = self.clicks.get(minute, 0) + 1
    ...         context.timer(minute)
    ...     def on_timer(self, key, time, context):
    ...         yield {"user": key, "until": f"{time:%H:%M}", "clicks": self.clicks.pop(time)}
    >>> flow, out = ef.Dataflow("clicks"), []
    >>> rows = [{"user": "ann", "ts": 0}, {"user": "ann", "ts": 20}, {"user": "ann", "ts": 90}]
    >>> clicks = flow.read(ef.from_items(rows, event_time="ts", unit="s")).key_by("user")
    >>> _ = clicks.process(PerMinute()).write(ef.to_list(out))
    >>> _ = flow.run(runtime="local").wait()
    >>> out
    [{'user': 'ann', 'until': '00:01', 'clicks': 2}, {'user': 'ann', 'until': '00:02', 'clicks': 1}]

    A timer fires after every earlier row, and perhaps after some later rows that arrived before the watermark. So keep the state
    of different times apart, as here.
    """

    @abstractmethod
    def on_row(self, key: Any, row: R, context: KeyContext) -> Iterable[Any] | None:
        """Yield rows (dicts or plain values) for a row; `key` is a tuple if there are several key columns.

        Called for each row in arrival order.
        """


class CoKeyedFunction(TimedFunction):
    """A function of the rows of a key in two streams, with states and timers that both share.

    >>> import evenflow as ef
    >>> class Answered(ef.CoKeyedFunction):
    ...     begun, answered = ef.value_state(), ef.value_state()
    ...     def on_left(self, key, row, context):
    ...         self.begun = row["ts"]
    ...         context.timer("1m")
    ...     def on_right(self, key, row, context):
    ...         self.answered = row["at"]
    ...     def on_timer(self, key, time, context):
    ...         yield {"call": key, "seconds": None if self.answered is None else self.answered - self.begun}
    ...         del self.begun, self.answered
    >>> flow, out = ef.Dataflow("calls"), []
    >>> calls = flow.read(ef.from_items([{"id": 1, "ts": 0}, {"id": 2, "ts": 1}], event_time="ts", unit="s"))
    >>> answers = flow.read(ef.from_items([{"call": 1, "at": 7}], event_time="at", unit="s"))
    >>> _ = calls.key_by("id").co_process(answers.key_by("call"), Answered()).write(ef.to_list(out))
    >>> _ = flow.run(runtime="local").wait()
    >>> out
    [{'call': 1, 'seconds': 7}, {'call': 2, 'seconds': None}]

    Rows of the two streams arrive in any order, also a row before another that is earlier. So keep a row that must wait for the
    other side, and decide by a timer.
    """

    @abstractmethod
    def on_left(self, key: Any, row: dict[str, Any], context: KeyContext) -> Iterable[Any] | None:
        """Yield rows for a row of the first stream, as `KeyedFunction.on_row`."""

    @abstractmethod
    def on_right(self, key: Any, row: dict[str, Any], context: KeyContext) -> Iterable[Any] | None:
        """Yield rows for a row of the second stream, as `KeyedFunction.on_row`."""


def _checked(at: datetime) -> int:
    """Return a timer's time in microseconds. Raises TypeError if it is no datetime, ValueError if it is outside the years 1 to 9999."""
    if not isinstance(at, datetime):
        raise TypeError(f'a timer takes a datetime, or a duration from context.time on, such as "10m"; got {at!r}')
    time = as_microseconds(at)
    if not EARLIEST <= time <= LATEST:
        raise ValueError(f"a timer's time must be in the years 1 to 9999 in UTC, got {at!r}")
    return time
