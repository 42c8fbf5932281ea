"""Checks the contract of your own sinks: seeded runs of checkpoints and crashes, without a job.

>>> import evenflow as ef
>>> from evenflow.testing import check_sink
>>> def begin():
...     rows = []
...     return ef.to_list(rows), lambda: rows
>>> check_sink(begin)
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from random import Random
from typing import Any, NoReturn

import msgpack
import pyarrow as pa

from ...actors.processes.packed_call import pack_call, unpack_call
from ...engine.batch import Batch
from ...engine.sink import Sink, SinkWriter
from .source_conformance import ConformanceError, Row

STEPS = 40
JOB = "conformance"

Begin = Callable[[], tuple[Sink, Callable[[], Iterable[Row]]]]
"""Makes an empty sink, and a function that reads back all visible rows."""


def check_sink(begin: Begin, *, seeds: Iterable[int] = range(50), exactly_once: bool | None = None) -> None:
    """Raise ConformanceError if the sink breaks a rule of `Sink` and `SinkWriter`. The rows are `{"n": int, "text": str}`.

    For each seed a sink is made by `begin` and started, and some writers get rows. Checkpoints are prepared and committed, and workers or
    the coordinator are lost before, between and after these steps: then the rows since the newest complete checkpoint are repeated, its
    commit is repeated, and the output prepared by lost writers is swept. If the sink is retractable, checkpoints are retracted. After each
    commit the visible rows must be those of all complete checkpoints, each once; with `exactly_once=False` at least once. None uses the
    sink's `guarantee`. The sink is stopped at the end, which must not change the visible rows. Committables and the results of `commit`
    must be msgpack-able values, and the sink must be picklable for workers.
    """
    for seed in seeds:
        sink, read = begin()
        exact = sink.guarantee.startswith("exactly once") if exactly_once is None else exactly_once
        random = Random(seed)  # noqa: S311 -- the point is that it can be repeated
        sink.start()
        run = _Run(sink, read, random, f"seed {seed}", exact=exact)
        try:
            for _ in range(STEPS):
                run.step()
            run.checkpoint(crash=None)
        finally:
            run.end()
        run.compare("after stop()")


class _Run:
    """A job with one sink: its writers, the complete checkpoints with their committables, and the number of rows that each covers."""

    def __init__(self, sink: Sink, read: Callable[[], Iterable[Row]], random: Random, run: str, *, exact: bool) -> None:
        self._driver, self._read, self._random, self._run, self._exact = sink, read, random, run, exact
        self._sent = pack_call(sink)
        self._coordinator = self._copy()
        self._coordinator.take_over(JOB, list)
        self._writers: list[SinkWriter] = []
        self._lost: list[SinkWriter] = []
        self._complete: list[tuple[int, list[Any], int]] = [(0, [], 0)]
        self._checkpoint = 0
        self._written = 0
        self._begin_attempt()

    def step(self) -> None:
        """Write a batch, take a checkpoint, perhaps with a crash on the way, or restore an older one."""
        chance = self._random.random()
        if chance < 0.6:
            self._write(self._random.randint(1, 5))
        elif chance < 0.95:
            self.checkpoint(
                self._random.choice([None, None, "while it is prepared", "when it is prepared", "before it is committed", "after"])
            )
        elif self._coordinator.retractable and len(self._complete) > 1:
            self._retract()

    def checkpoint(self, crash: str | None) -> None:
        """Prepare and commit; `crash` sets the point at which all writers are lost."""
        self._checkpoint += 1
        committables = list[Any]()
        for writer in self._writers:
            if crash == "while it is prepared" and self._random.random() < 0.5:
                return self._recover()
            committables += writer.prepare(self._checkpoint)
        if crash in ("while it is prepared", "when it is prepared"):
            return self._recover()
        self._complete.append((self._checkpoint, self._packed(committables), self._written))
        if crash == "before it is committed":
            return self._recover()
        self._commit()
        self.compare(f"after checkpoint {self._checkpoint}")
        if crash == "after":
            self._recover()
        return None

    def end(self) -> None:
        """End the job; lost writers are closed only now."""
        for writer in [*self._writers, *self._lost]:
            writer.close()
        self._lose_coordinator()
        self._driver.stop()

    def compare(self, when: str) -> None:
        """Raise ConformanceError unless the visible rows are those of the complete checkpoints."""
        seen, expected = Counter(row["n"] for row in self._read()), Counter(range(self._complete[-1][2]))
        if expected - seen:
            self._fail(f"{when} row {min(expected - seen)} of {len(expected)} can't be seen")
        if self._exact and seen - expected:
            row = min(seen - expected)
            self._fail(f"{when} row {row} of {len(expected)} can be seen {seen[row]} times" + ("" if row in expected else ", too early"))

    def _write(self, count: int) -> None:
        numbers = range(self._written, self._written + count)
        rows = pa.record_batch({"n": pa.array(numbers, pa.int64()), "text": [f"row {n}" for n in numbers]})
        self._random.choice(self._writers).write(Batch(rows))
        self._written += count

    def _commit(self) -> None:
        checkpoint, committables, _ = self._complete[-1]
        if checkpoint:
            self._deliver(self._coordinator.commit(checkpoint, committables))

    def _recover(self) -> None:
        """Lose all writers, some without being closed, and in half of the cases the coordinator too."""
        for writer in self._writers:
            self._lost.append(writer) if self._random.random() < 0.5 else writer.close()
        replaced = self._random.random() < 0.5
        if replaced:
            self._lose_coordinator()
            self._coordinator = self._copy()
        self._commit()
        if replaced:
            self._coordinator.take_over(JOB, lambda: self._complete[-1][1])
        self._coordinator.sweep()
        self._begin_attempt()
        self.compare("after a recovery")

    def _retract(self) -> None:
        """Retract the newest checkpoints, as if they were damaged."""
        for writer in self._writers:
            writer.close()
        del self._complete[self._random.randrange(1, len(self._complete)) :]
        for _ in range(self._random.randint(1, 2)):
            self._deliver(self._coordinator.retract(self._complete[-1][0]))
        self._commit()
        self._coordinator.sweep()
        self._begin_attempt()
        self.compare("after retract()")

    def _lose_coordinator(self) -> None:
        """Lose the coordinator's process, and with it resources such as a file lock."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            del self._coordinator

    def _begin_attempt(self) -> None:
        self._written = self._complete[-1][2]
        parallelism = self._random.randint(1, 3)
        self._writers = [self._copy().writer(index, parallelism) for index in range(parallelism)]

    def _deliver(self, payloads: list[Any]) -> None:
        for payload in self._packed(payloads):
            self._driver.deliver(payload)

    def _packed(self, values: list[Any]) -> list[Any]:
        try:
            return list(msgpack.unpackb(msgpack.packb(values), strict_map_key=False))
        except (TypeError, ValueError, OverflowError) as error:
            self._fail(f"{values!r:.300} can't be packed by msgpack: {error}")

    def _copy(self) -> Sink:
        copy: Sink
        (copy,) = unpack_call(self._sent)
        return copy

    def _fail(self, problem: str) -> NoReturn:
        raise ConformanceError(f"sink `{self._driver.name}`, {self._run}: {problem}")
