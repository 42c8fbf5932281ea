from __future__ import annotations

import random
from collections import Counter
from typing import Any

import msgpack
import pytest

import evenflow as ef
from evenflow.connectors.python.generator import from_generator
from evenflow.engine.protocol.elements import MAX_TIME, MIN_TIME

ROWS = 40


class Batches:
    """A generator of a partition's rows in lists of random length, sometimes none."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def __call__(self, partition: int, position: Any) -> Any:
        n = position or 0
        while n < ROWS:
            if self.random.random() < 0.2:
                yield None
            count = self.random.randint(0, 5)
            rows = [{"ts": 1_000 + m, "n": 100 * partition + m} for m in range(n, min(n + count, ROWS))]
            n += len(rows)
            yield rows[0] if len(rows) == 1 else rows, n


def moved(source: Any, positions: list[Any], parallelism: int) -> list[Any]:
    readers = [source.reader(index, parallelism) for index in range(parallelism)]
    for reader, position in zip(readers, source.share_out(positions, parallelism), strict=True):
        reader.seek(msgpack.unpackb(msgpack.packb(position)))
        assert reader.watermark() >= source.earliest(position)
    return readers


@pytest.mark.few(1)
def test_every_row_comes_once_and_in_order_whatever_is_lost_and_shared_out_when():
    for seed in range(300):
        choice = random.Random(seed)
        source = from_generator(Batches(seed), partitions=choice.randint(1, 5), event_time="ts")
        readers, rows = [source.reader(0, 1)], list[int]()
        saved: tuple[list[Any], list[int]] = ([readers[0].position()], [])
        while not all(reader.finished for reader in readers):
            step = choice.random()
            if step < 0.9:
                reader = choice.choice(readers)
                watermark = reader.watermark()
                batch = reader.poll(choice.randint(1, 9))
                assert reader.watermark() >= watermark
                if batch is not None:
                    assert batch.times.min() >= watermark
                    rows += batch.rows["n"].to_pylist()
            elif step < 0.97:
                saved = ([reader.position() for reader in readers], [*rows])
                readers = moved(source, saved[0], choice.randint(1, 4))
            else:
                readers, rows = moved(source, saved[0], choice.randint(1, 4)), [*saved[1]]
        partitions = Counter(n // 100 for n in rows)
        for partition, count in partitions.items():
            assert count == ROWS, f"seed {seed}"
            assert [n for n in rows if n // 100 == partition] == [*range(100 * partition, 100 * partition + ROWS)], f"seed {seed}"
        assert all(reader.watermark() == MAX_TIME for reader in readers)


def test_a_partition_without_rows_holds_event_time_back():
    def rows(partition, position):
        yield ({"ts": 5}, 1) if partition else None
        yield None

    source = from_generator(rows, partitions=2, event_time="ts")
    reader = source.reader(0, 1)
    assert reader.poll(9) is not None
    assert reader.watermark() == source.earliest(reader.position()) == MIN_TIME


@pytest.mark.usefixtures("waiting_for_jobs")
def test_a_job_reads_all_partitions():
    def numbers(partition, position):
        for n in range(position or 0, 10):
            yield {"partition": partition, "n": n}, n + 1

    rows: list[dict[str, Any]] = []
    flow = ef.Dataflow("generated")
    flow.read(ef.from_generator(numbers, partitions=3)).parallelism(2).write(ef.to_list(rows))
    flow.run(runtime="local").wait("60s")
    assert sorted((row["partition"], row["n"]) for row in rows) == [(partition, n) for partition in range(3) for n in range(10)]


def yields(*values):
    return lambda partition, position: iter(values)


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (yields({"n": 1}), r"yielded \{'n': 1\}; expected a row \(a dict\) or a list of rows, and a position"),
        (yields((1, 2)), r"yielded \(1, 2\); expected a row"),
        (yields(({"n": 1}, object())), r"yielded the position <object .*>, which can't be saved"),
        (lambda partition, position: 1 / 0, "raised ZeroDivisionError: division by zero"),
        (lambda partition, position: None, "raised TypeError: 'NoneType' object is not iterable"),
    ],
)
def test_an_error_of_a_generator_names_its_partition(function, problem):
    with pytest.raises(ef.ConnectorError, match=f"operator `from_generator`: the generator of partition 0 {problem}"):
        from_generator(function).reader(0, 1).poll(9)


def test_a_generator_that_has_lost_rows_is_noticed():
    source = from_generator(yields(([{"n": 1}, {"n": 2}, {"n": 3}], 3)))
    reader = source.reader(0, 1)
    reader.poll(2)
    again = from_generator(yields()).reader(0, 1)
    again.seek(reader.position())
    with pytest.raises(ef.ConnectorError, match="ended 2 rows before the position of the checkpoint"):
        again.poll(9)


def test_rows_that_do_not_fit_are_refused():
    with pytest.raises(ef.RecordError, match="a row does not fit `schema`"):
        from_generator(yields(({"n": "x"}, 1)), schema={"n": "int64"}).reader(0, 1).poll(9)
    with pytest.raises(ef.RecordError, match=r"item 1, column `n`"):
        from_generator(yields(([{"n": 1}, {"n": "x"}], 1))).reader(0, 1).poll(9)


@pytest.mark.parametrize("partitions", [0, True, 1.5])
def test_an_impossible_number_of_partitions_is_refused(partitions):
    with pytest.raises(ef.FlowError, match=f"partitions is {partitions}; it must be a whole number"):
        from_generator(yields(), partitions=partitions)
