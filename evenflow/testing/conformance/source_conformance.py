"""Checks the contract of your own sources: seeded runs of their readers, without a job.

>>> import evenflow as ef
>>> from evenflow.testing import check_source
>>> check_source(ef.from_items([1, 2, 3]))
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from random import Random
from typing import Any, NoReturn

import msgpack

from ...actors.processes.packed_call import pack_call, unpack_call
from ...engine.protocol.elements import MAX_TIME, MIN_TIME
from ...engine.source import Source, SourceReader

Row = dict[str, Any]

SILENT = 20
"""The number of empty polls of all readers in turn after which a source without an end counts as read."""

STEPS = 60


class ConformanceError(AssertionError):
    """A connector breaks a rule of its interface. The message has the rule, and the seed that reproduces it."""


def check_source(source: Source, *, seeds: Iterable[int] = range(50), split: Callable[[Row], Any] | None = None) -> None:
    """Raise ConformanceError if the source's readers break a rule of `Source` and `SourceReader`.

    The source must end, or fall silent, with the same rows every time; it is started and stopped. For each seed some readers are polled in
    a random order. They are lost, and others seek to saved positions; if the source can be shared out, their number may differ. Each row
    must be read exactly once. `split(row)` names the split of a row: rows of one split must be read in the order of a single reader.
    Positions must be msgpack-able values, reading one must change nothing, watermarks must be true and never fall, `earliest` must agree
    with them, a finished reader must return nothing more, and the source must be picklable for workers.
    """
    source.start()
    try:
        (there,) = unpack_call(pack_call(source))
        plain = _Readers(there, 1, "a plain read").drained()
        expected = _by_split(plain, split)
        for seed in seeds:
            random = Random(seed)  # noqa: S311 -- the point is that it can be repeated
            readers = _Readers(there, random.randint(1, 4), f"seed {seed}")
            for _ in range(STEPS):
                readers.step(random)
            readers.compare(expected, _by_split(readers.drained(), split), ordered=split is not None)
    finally:
        source.stop()


class _Readers:
    """All readers of a source, and the rows that they have read, as text."""

    def __init__(self, source: Source, parallelism: int, run: str) -> None:
        self._source, self._run = source, run
        self._readers = [source.reader(index, parallelism) for index in range(parallelism)]
        self._rows: list[Row] = []
        self._saved: tuple[list[Any], list[Row]] = (self._positions(), [])

    def step(self, random: Random) -> None:
        """Poll a reader, save the positions, or lose all readers."""
        chance = random.random()
        if chance < 0.8:
            self._poll(random.choice(self._readers), random.randint(1, 6))
        elif chance < 0.9:
            self._saved = (self._positions(), [*self._rows])
        else:
            self._restore(random.randint(1, 4) if self._source.can_be_shared_out else len(self._readers))

    def drained(self) -> list[Row]:
        """Return all rows, once the readers have finished or have fallen silent."""
        silent = 0
        while silent < SILENT and not all(reader.finished for reader in self._readers):
            given = sum(self._poll(reader, 100) for reader in self._readers)
            silent = 0 if given else silent + 1
        for reader in self._readers:
            reader.close()
        return self._rows

    def compare(self, expected: dict[Any, list[str]], found: dict[Any, list[str]], *, ordered: bool) -> None:
        """Raise ConformanceError unless the rows are those of a plain read."""
        lost, more = (Counter(chain.from_iterable(rows.values())) for rows in (expected, found))
        for what, rows in (("a row is missing", lost - more), ("a row came twice, or is new", more - lost)):
            if rows:
                self._fail(f"{what}: {next(iter(rows))}")
        for split, in_order in expected.items():
            if ordered and found[split] != in_order:
                self._fail(f"the rows of split {split!r} came in another order: {found[split]}, and not {in_order}")

    def _poll(self, reader: SourceReader, max_rows: int) -> int:
        finished, watermark = reader.finished, reader.watermark()
        batch = reader.poll(max_rows)
        if finished and (batch is not None or not reader.finished):
            self._fail("a reader that had finished went on")
        if reader.watermark() < watermark:
            self._fail(f"the watermark fell from {watermark} to {reader.watermark()}")
        if reader.finished and reader.watermark() != MAX_TIME:
            self._fail(f"the watermark of a reader that has finished is {reader.watermark()}, and not MAX_TIME")
        if batch is None:
            return 0
        if batch.times is not None and batch.num_rows and batch.times.min() < watermark:
            self._fail(f"a row of time {batch.times.min()} came behind the watermark {watermark}")
        self._rows += batch.to_rows()
        return batch.num_rows

    def _positions(self) -> list[Any]:
        return [self._position(reader) for reader in self._readers]

    def _position(self, reader: SourceReader) -> Any:
        before = (reader.finished, reader.watermark())
        position = reader.position()
        try:
            packed = msgpack.packb(position)
        except (TypeError, ValueError, OverflowError) as error:
            self._fail(f"the position {position!r} can't be packed by msgpack: {error}")
        if msgpack.packb(reader.position()) != packed or (reader.finished, reader.watermark()) != before:
            self._fail(f"asking for the position {position!r} has changed the reader")
        return msgpack.unpackb(packed, strict_map_key=False)

    def _restore(self, parallelism: int) -> None:
        positions, rows = self._saved
        for reader in self._readers:
            reader.close()
        shared = positions
        if self._source.can_be_shared_out:
            untouched = deepcopy(positions)
            shared = self._source.share_out(positions, parallelism)
            if positions != untouched or len(shared) != parallelism:
                self._fail(f"share_out has changed its positions, or has not given {parallelism}: {shared}")
            self._compare_earliest(positions, shared)
        self._readers = [self._source.reader(index, parallelism) for index in range(parallelism)]
        for reader, position in zip(self._readers, shared, strict=True):
            reader.seek(msgpack.unpackb(msgpack.packb(position), strict_map_key=False))
            earliest = self._source.earliest(position)
            if reader.watermark() < earliest and earliest != MAX_TIME:
                self._fail(f"earliest is {earliest}, but the watermark of a reader there is {reader.watermark()}")
        self._rows = [*rows]
        self._saved = (self._positions(), rows)

    def _compare_earliest(self, before: list[Any], after: list[Any]) -> None:
        first, second = (min(map(self._source.earliest, positions), default=MIN_TIME) for positions in (before, after))
        if first != second:
            self._fail(f"share_out has changed the earliest time of all positions from {first} to {second}")

    def _fail(self, problem: str) -> NoReturn:
        raise ConformanceError(f"source `{self._source.name}`, {self._run}: {problem}")


def _by_split(rows: list[Row], split: Callable[[Row], Any] | None) -> dict[Any, list[str]]:
    found: dict[Any, list[str]] = defaultdict(list)
    for row in rows:
        found[None if split is None else split(row)].append(repr(row))
    return found
