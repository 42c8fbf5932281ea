"""All readers of a source that follows something: polled, lost and shared out, with the rows that they gave."""

from __future__ import annotations

from random import Random
from typing import Any

import msgpack

from evenflow.engine.source import Source


def numbers(batch: Any) -> list[int]:
    return [int(value) for value in batch.rows.column("n" if "n" in batch.rows.schema.names else "item").to_pylist()]


def through_a_checkpoint(position: Any) -> Any:
    return msgpack.unpackb(msgpack.packb(position))


class Readers:
    """All readers of a source, the rows that they gave since the start, and a checkpoint of both."""

    def __init__(self, source: Source, parallelism: int) -> None:
        self.source, self.rows = source, list[int]()
        self.readers = [source.reader(index, parallelism) for index in range(parallelism)]
        self.saved: tuple[list[Any], list[int]] = ([], [])
        self.save()

    def poll(self, index: int, max_rows: int) -> None:
        reader = self.readers[index % len(self.readers)]
        watermark = reader.watermark()
        batch = reader.poll(max_rows)
        assert reader.watermark() >= watermark
        if batch is not None:
            assert 0 < batch.num_rows <= max_rows
            assert batch.times is None or batch.times.min() >= watermark
            self.rows += numbers(batch)
        assert not reader.finished

    def save(self) -> None:
        self.saved = ([through_a_checkpoint(reader.position()) for reader in self.readers], [*self.rows])

    def share_out(self, parallelism: int) -> None:
        self.save()
        self.restore(parallelism)

    def restore(self, parallelism: int) -> None:
        positions, self.rows = self.saved[0], [*self.saved[1]]
        self.close()
        shared = self.source.share_out(positions, parallelism)
        assert min(map(self.source.earliest, shared)) == min(map(self.source.earliest, positions))
        self.readers = [self.source.reader(index, parallelism) for index in range(parallelism)]
        for reader, position in zip(self.readers, shared, strict=True):
            reader.seek(through_a_checkpoint(position))
            assert reader.watermark() >= self.source.earliest(position)

    def disturb(self, random: Random, polls: float, saves: float, shares: float, most_rows: int) -> None:
        """Poll, save, reassign or otherwise restore, with these chances. A poll is for up to `most_rows`."""
        step = random.random()
        if step < polls:
            self.poll(random.randrange(3), random.randint(1, most_rows))
        elif step < polls + saves:
            self.save()
        elif step < polls + saves + shares:
            self.share_out(random.randint(1, 4))
        else:
            self.restore(random.randint(1, 4))

    def drain(self) -> list[int]:
        """Return all rows, once no reader has more."""
        quiet = 0
        while quiet < 2 * len(self.readers):
            for index in range(len(self.readers)):
                before = len(self.rows)
                self.poll(index, 7)
                quiet = quiet + 1 if len(self.rows) == before else 0
        return self.rows

    def close(self) -> None:
        for reader in self.readers:
            reader.close()
