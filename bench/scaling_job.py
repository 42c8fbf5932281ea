"""The word count that the scaling benchmarks run on Ray: sentences at a rate that changes in steps, and workers that sleep for each record.

Sleeping instead of computing lets more workers get more done on two cores, as on a machine each. An operator's true rate is then one over
its sleep, less the engine's overhead, so the best number of workers is known.

>>> source = StepsSource([(10.0, 100.0), (5.0, 200.0)], begun=1000.0)
>>> source.offered(1011.0), source.total, source.due([0, 1500])
(1200, 2000, [1000.0, 1012.5])
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

import evenflow as ef

from ..engine.batch import Batch
from ..engine.source import Source, SourceReader
from .sinks import DiscardSink
from .trace import TraceSink

READERS = 2
"""One more than the operator after them begins with: operators of as many workers would be chained, and scaled together."""

WORDS, VOCABULARY = 4, 1000
SPLIT, COUNT = 0.02, 0.005
"""Seconds that a worker waits for a sentence, and for a word."""

FLAT_MAP, STATEFUL_MAP = "flat_map", "stateful_map"


class StepsSource(Source):
    """Rows of `number` (0, 1, 2 ...) and `created` (ns, when the row was due) from the time `begun` on (seconds since the epoch).

    `steps`: (seconds, rows/s) one after the other; then it ends. `rate` is what is offered at the time of asking, at the end that of the
    last step: what is not yet read then is to be read at the same pace.
    """

    parallelism = READERS
    guarantee = "at least once (it only drives a benchmark)"

    def __init__(self, steps: Sequence[tuple[float, float]], begun: float) -> None:
        self.name = "sentences"
        self._times = begun + np.cumsum([0.0, *(seconds for seconds, _ in steps)])
        self._rows = np.cumsum([0.0, *(seconds * rate for seconds, rate in steps)])

    @property
    def rate(self) -> float:  # type: ignore[override]  # it is asked and never set
        step = min(int(np.searchsorted(self._times, time.time(), side="right")), len(self._times) - 1)
        return float(np.diff(self._rows)[step - 1] / np.diff(self._times)[step - 1]) if step else 0.0

    @property
    def total(self) -> int:
        """Rows of all steps."""
        return int(self._rows[-1])

    def offered(self, now: float) -> int:
        """Rows that are due by then."""
        return int(np.interp(now, self._times, self._rows))

    def due(self, rows: Any) -> Any:
        """When these rows are due, seconds since the epoch."""
        return np.interp(rows, self._rows, self._times).tolist()

    def reader(self, index: int, parallelism: int) -> SourceReader:
        return StepsReader(self, index, parallelism)


class StepsReader(SourceReader):
    """Every `step`-th row from `index` on."""

    def __init__(self, source: StepsSource, index: int, step: int) -> None:
        self._source, self._next, self._step = source, index, step

    def poll(self, max_rows: int) -> Batch | None:
        end = min(self._source.offered(time.time()), self._next + self._step * max_rows)
        rows = np.arange(self._next, end, self._step)
        if not len(rows):
            return None
        self._next += len(rows) * self._step
        created = (np.array(self._source.due(rows)) * 1e9).astype(np.int64)
        return Batch(pa.record_batch({"number": rows, "created": created}))

    @property
    def finished(self) -> bool:
        return self._next >= self._source.total

    def backlog(self) -> int:
        return len(range(self._next, self._source.offered(time.time()), self._step))

    def position(self) -> Any:
        return self._next

    def seek(self, position: Any) -> None:
        self._next = position


def words_of(number: int, hot: float = 0.0) -> Iterator[int]:
    """The words of a sentence: word 0 has the part `hot` of all words, and the others have equal parts.

    >>> words = [word for number in range(1000) for word in words_of(number, 0.5)]
    >>> len(words), round(words.count(0) / len(words), 2)
    (4000, 0.5)
    """
    for place in range(number * WORDS, (number + 1) * WORDS):
        mixed = place * 0x9E3779B97F4A7C15 % 2**64 / 2**64
        yield 0 if mixed < hot else 1 + int((mixed - hot) / (1 - hot) * (VOCABULARY - 1))


def word_count(name: str, source: StepsSource, config: ef.JobConfig) -> tuple[ef.Job, TraceSink]:
    """Start it."""

    def split(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
        time.sleep(SPLIT)
        return ({"key": word, "created": row["created"]} for word in words_of(row["number"]))

    sink, flow = TraceSink(), ef.Dataflow(name)
    flow.read(source).flat_map(split).key_by("key").stateful_map(count).write(sink)
    return flow.run(config=config), sink


def skewed_count(name: str, source: StepsSource, config: ef.JobConfig, hot: float) -> ef.Job:
    """Start one that splits at no cost, in the source's workers; one word has the part `hot` of all."""

    def split(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
        return ({"key": word} for word in words_of(row["number"], hot))

    flow = ef.Dataflow(name)
    flow.read(source).flat_map(split).parallelism(READERS).key_by("key").stateful_map(count).write(DiscardSink())
    return flow.run(config=config)


def count(state: int | None, row: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """One more of that word; the row goes on."""
    time.sleep(COUNT)
    return (state or 0) + 1, row


def lost(sink: TraceSink, source: StepsSource) -> int:
    """Results that are missing, or there too often, of a job that has read all."""
    expected = np.bincount([word for number in range(source.total) for word in words_of(number)], minlength=VOCABULARY + 1)
    found = np.bincount(sink.trace()["key"], minlength=len(expected))
    return int(np.abs(found - expected).sum())


def workers_of(job: ef.Job, operators: Sequence[str]) -> dict[str, int]:
    """The workers of these operators."""
    names = job.status().workers
    return {operator: sum(name.startswith(f"{operator}-") for name in names) for operator in operators}
