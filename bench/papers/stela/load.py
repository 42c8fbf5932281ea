"""Operators that wait for each record instead of computing, so that more workers get more done on a machine with few cores."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import evenflow as ef

from .rows import Row, counted, same


@dataclass(frozen=True, slots=True)
class Load:
    """Adds operators to a stream: `name`, its `workers`, and the milliseconds that a worker waits for each record.

    They wait `pace` times as long; 0: not at all. The last operator of each path adds the time at which it was done as column `at` (ns).
    """

    pace: float = 1.0

    def map(self, stream: ef.Stream, name: str, workers: int, wait_ms: float, function: Callable[[Row], Row] = same) -> ef.Stream:
        """Add an operator that changes rows."""
        wait = self._wait(wait_ms)

        def waiting(row: Row) -> Row:
            wait()
            return function(row)

        return stream.map(waiting).named(name).parallelism(workers)

    def keep(self, stream: ef.Stream, name: str, workers: int, wait_ms: float, predicate: Callable[[Row], bool]) -> ef.Stream:
        """Add an operator that passes the rows for which the predicate is true."""
        wait = self._wait(wait_ms)

        def waiting(row: Row) -> bool:
            wait()
            return predicate(row)

        return stream.filter(waiting).named(name).parallelism(workers)

    def merge(self, streams: list[ef.Stream], name: str, workers: int, wait_ms: float) -> ef.Stream:
        """Add an operator with several inputs that passes their rows on."""
        first, *others = streams
        both = first.union(*others).named(name).parallelism(workers)
        return self.map(both, f"{name}-wait", workers, wait_ms)

    def count(self, stream: ef.Stream, name: str, workers: int, wait_ms: float) -> ef.Stream:
        """Add an operator with state: rows become the number of rows of their id so far."""
        wait = self._wait(wait_ms)

        def waiting(count: int | None, row: Row) -> tuple[int, Row]:
            wait()
            return (count or 0) + 1, counted(row, (count or 0) + 1)

        return stream.key_by("id").stateful_map(waiting).named(name).parallelism(workers)

    def count_both(self, left: ef.Stream, right: ef.Stream, name: str, workers: int, wait_ms: float) -> ef.Stream:
        """Add an operator with state that counts the rows of an id from two inputs together."""
        function = _CountBoth(self._wait(wait_ms))
        return left.key_by("id").co_process(right.key_by("id"), function).named(name).parallelism(workers)

    def _wait(self, wait_ms: float) -> Callable[[], None]:
        seconds = wait_ms * self.pace / 1000.0
        return (lambda: time.sleep(seconds)) if seconds else (lambda: None)


class _CountBoth(ef.CoKeyedFunction):
    """Counts the rows of an id on both sides; each row becomes the count so far."""

    count = ef.value_state()

    def __init__(self, wait: Callable[[], None]) -> None:
        self._wait = wait

    def on_left(self, key: Any, row: Row, context: Any) -> Iterator[Row]:
        self._wait()
        self.count = (self.count or 0) + 1
        yield counted(row, self.count)

    on_right = on_left


def stamped(row: Row) -> Row:
    """Return the row's text, and the time now."""
    return {"text": row["text"], "at": time.time_ns()}
