"""Inputs without rows count with the clock's time after `idle_after`: a clock of the test's own, and arrivals at its times."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgpack
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from followed_folder import Folder
from patience import patience

import evenflow as ef
from evenflow.connectors.exchange.exchange_folder import ExchangeFolder
from evenflow.connectors.followed.versions import VersionsReader, share_out_versions
from evenflow.connectors.quiet import CLOCKS, Quiet
from evenflow.connectors.spark.tail import TailReader, share_out_log
from evenflow.engine.errors import FlowError
from evenflow.engine.protocol.elements import MIN_TIME
from evenflow.engine.source import Source, SourceReader
from evenflow.engine.time.event_time import EventTime

SECOND = 1_000_000
DELAY = 2
TIMED: dict[str, Any] = {"event_time": "ts", "max_delay": DELAY, "idle_after": "30s"}


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now

    @property
    def delayed(self) -> int:
        """The clock's time less `max_delay`, in microseconds."""
        return round((self.now - DELAY) * SECOND)


@pytest.fixture(autouse=True)
def clock(monkeypatch) -> Iterator[Clock]:
    made, before = Clock(), (CLOCKS.now, CLOCKS.wall)
    for name in ("now", "wall"):
        object.__setattr__(CLOCKS, name, made)
    yield made
    for name, function in zip(("now", "wall"), before, strict=True):
        object.__setattr__(CLOCKS, name, function)


class Input:
    """A stream that a test extends: `arrive` adds a row with an event time in seconds."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files = 0

    def arrive(self, seconds: int) -> None:
        raise NotImplementedError

    def reader(self) -> SourceReader:
        raise NotImplementedError


class Generated(Input):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.log: list[int] = []
        self.source: Source = ef.from_generator(self.rows, **{**TIMED, "unit": "s"})

    def rows(self, partition: int, position: Any) -> Iterator[Any]:
        at = position or 0
        while True:
            yield ({"ts": self.log[at]}, (at := at + 1)) if at < len(self.log) else None

    def arrive(self, seconds: int) -> None:
        self.log.append(seconds)

    def reader(self) -> SourceReader:
        return self.source.reader(0, 1)


class Files(Input):
    kind = "csv"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.folder = Folder(path, self.kind)
        self.source = self.folder.source(**TIMED)

    def arrive(self, seconds: int) -> None:
        self.folder.arrive([(seconds * 1_000, 0)])

    def reader(self) -> SourceReader:
        return self.source.reader(0, 1)


class Parquet(Files):
    kind = "parquet"


class Growing(Input):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.file = path / "log.json"
        self.source = ef.read_json(str(path), schema={"ts": "int64"}, follow="lines", poll_every="1us", **TIMED)
        self.source.start()

    def arrive(self, seconds: int) -> None:
        with self.file.open("a") as file:
            file.write(f'{{"ts": {seconds * 1_000}}}\n')

    def reader(self) -> SourceReader:
        return self.source.reader(0, 1)


SCHEMA = pa.schema({"ts": pa.int64()})
SPEC = EventTime("ts", "s", DELAY * SECOND, 30 * SECOND)


class Spark(Input):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.exchange = ExchangeFolder(path)
        self.exchange.create()

    def arrive(self, seconds: int) -> None:
        file = self.path / f"{self.files}.parquet"
        pq.write_table(pa.table([[seconds]], SCHEMA), file)
        self.exchange.publish(self.files, [file])
        self.files += 1

    def reader(self) -> SourceReader:
        return TailReader(self.exchange, SCHEMA, operator="tail", index=0, parallelism=1, event_time=SPEC)


class Versions(Input):
    """A table whose versions each add a file, as Delta Lake's and Iceberg's."""

    name = "table"
    first: tuple[int, list[str]] = (0, [])

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.log: list[int] = []

    def arrive(self, seconds: int) -> None:
        self.log.append(seconds)

    def added(self, version: int) -> list[str] | None:
        return [str(version)] if version <= len(self.log) else None

    def peek(self, file: str) -> Any:
        from evenflow.connectors.files.splits import Split

        time = self.log[int(file) - 1] * SECOND
        return Split(file, 0, min_time=time, max_time=time)

    def open(self, split: Any, batch_rows: int) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"ts": [self.log[int(split.path) - 1]]}, SCHEMA)

    def reader(self) -> SourceReader:
        return VersionsReader(self, self.open, 1e-6, index=0, parallelism=1, event_time=SPEC)


every_input = pytest.mark.parametrize("made", [Generated, Files, Parquet, Growing, Spark, Versions])


def drained(reader: SourceReader, clock: Clock) -> list[int]:
    """Poll until nothing is ready; a microsecond passes before each poll, so that no look is skipped."""
    times: list[int] = []
    for _ in range(2):  # the first poll without rows may end a file, and the second looks for others
        while True:
            clock.now += 1e-5
            batch = reader.poll(10)
            if batch is None:
                break
            times += [time // SECOND for time in batch.times.tolist()]
    return times


def about(time: int) -> Any:
    return pytest.approx(time, abs=2 * 100_000)


@every_input
def test_an_input_without_rows_follows_the_clock_after_idle_after(made: Callable[[Path], Input], clock: Clock, tmp_path: Path):
    given = made(tmp_path)
    reader = given.reader()
    given.arrive(1_000)
    assert drained(reader, clock) == [1_000]
    clock.now += 29
    assert drained(reader, clock) == []
    assert reader.watermark() == (1_000 - DELAY) * SECOND
    clock.now += 2
    assert drained(reader, clock) == []
    assert reader.watermark() == about(clock.delayed)
    given.arrive(1_030)
    assert drained(reader, clock) == [1_030]
    assert reader.watermark() == about(clock.delayed)
    clock.now += 29
    assert drained(reader, clock) == []
    assert reader.watermark() == about(clock.delayed - 29 * SECOND)


@every_input
def test_an_input_that_never_had_rows_follows_the_clock_too(made: Callable[[Path], Input], clock: Clock, tmp_path: Path):
    reader = made(tmp_path).reader()
    assert drained(reader, clock) == []
    assert reader.watermark() == MIN_TIME
    clock.now += 31
    assert drained(reader, clock) == []
    assert reader.watermark() == about(clock.delayed)


@every_input
def test_event_time_after_a_recovery_is_where_the_checkpoint_was(made: Callable[[Path], Input], clock: Clock, tmp_path: Path):
    given = made(tmp_path)
    reader = given.reader()
    given.arrive(1_000)
    drained(reader, clock)
    clock.now += 31
    drained(reader, clock)
    position, before = msgpack.unpackb(msgpack.packb(reader.position()), strict_map_key=False), reader.watermark()
    clock.now += 500
    again = given.reader()
    again.seek(position)
    assert drained(again, clock) == []
    assert again.watermark() == before
    clock.now += 31
    drained(again, clock)
    assert again.watermark() == about(clock.delayed)


@every_input
def test_only_the_last_look_counts_when_a_reader_is_not_polled_for_long(made: Callable[[Path], Input], clock: Clock, tmp_path: Path):
    given = made(tmp_path)
    reader = given.reader()
    clock.now += 31
    drained(reader, clock)
    at = clock.delayed
    given.arrive(1_032)
    clock.now += 3_600
    assert reader.watermark() == about(at)
    assert drained(reader, clock) == [1_032]
    assert reader.watermark() < 1_040 * SECOND


def test_a_quiet_partition_does_not_hold_back_the_others_of_its_worker(clock: Clock):
    def rows(partition: int, position: Any) -> Iterator[Any]:
        while True:
            yield None if partition else ({"ts": int(clock.now)}, 0)

    reader = ef.from_generator(rows, partitions=2, unit="s", **TIMED).reader(0, 1)
    for _ in range(40):
        clock.now += 1
        reader.poll(1)
    assert reader.watermark() >= (1_038 - DELAY) * SECOND
    assert [figures.idle for figures in reader.split_figures()] == [False, True]


def test_shared_out_partitions_go_on_from_the_earliest_watermark(clock: Clock):
    source = ef.from_generator(lambda partition, position: iter(lambda: None, 0), partitions=3, unit="s", **TIMED)
    readers = [source.reader(index, 2) for index in range(2)]
    clock.now += 31
    readers[0].poll(1)
    clock.now += 5
    readers[1].poll(1)
    shared = source.share_out([reader.position() for reader in readers], 3)
    assert [source.earliest(position) for position in shared] == [about(clock.delayed - 5 * SECOND)] * 3


def restored(source: Source, positions: list[Any]) -> list[SourceReader]:
    readers = [source.reader(index, len(positions)) for index in range(len(positions))]
    for reader, position in zip(readers, positions, strict=True):
        reader.seek(position)
    return readers


def watermark_of(reader: Any, clock: Clock, *, looks: bool) -> int:
    """Return the reader's watermark. `looks=False` plants a fault: an idle input has the clock's time of now, not of its last look."""
    planted = not looks and any(partition.quiet.is_idle for partition in reader._partitions)
    return max(reader.watermark(), clock.delayed if planted else MIN_TIME)


def late_rows(seed: int, clock: Clock, *, looks: bool = True) -> int:
    """Count the rows below the watermark, of rows that arrive at most `DELAY` after their event time.

    Readers are polled, left alone, lost, and shared out.
    """
    choice, log, late = random.Random(seed), list[tuple[int, int]](), 0

    def rows(partition: int, position: Any) -> Iterator[Any]:
        at = position or 0
        while True:
            own = [time for place, time in log if place == partition]
            yield ({"ts": own[at]}, (at := at + 1)) if at < len(own) else None

    source = ef.from_generator(rows, partitions=3, **{**TIMED, "idle_after": "5s"})
    readers = [source.reader(0, 1)]
    saved = [readers[0].position()]
    for _ in range(150):
        clock.now += choice.choice([0.0, 0.1, 1.0, 8.0])
        step = choice.random()
        if step < 0.2:
            log.append((choice.randrange(3), round((clock.now - choice.random() * DELAY) * 1_000)))
        elif step < 0.85:
            reader = choice.choice(readers)
            watermark = watermark_of(reader, clock, looks=looks)
            batch = reader.poll(choice.randint(1, 3))
            late += 0 if batch is None else int((batch.times < watermark).sum())
        elif step < 0.9:
            saved = [reader.position() for reader in readers]
        elif step < 0.95:
            readers = restored(source, saved)
        else:
            saved = source.share_out([reader.position() for reader in readers], choice.randint(1, 3))
            readers = restored(source, saved)
    return late


def test_no_row_that_arrives_within_max_delay_is_late_whatever_is_lost_and_moved(clock: Clock):
    assert sum(late_rows(seed, clock) for seed in range(60)) == 0


def test_planted_fault_an_idle_input_that_follows_the_clock_without_looking_is_found(clock: Clock):
    assert sum(late_rows(seed, clock, looks=False) for seed in range(60)) > 0


def test_quiet_without_idle_after_never_counts_with_the_clock(clock: Clock):
    for spec in (None, EventTime("ts")):
        quiet = Quiet(spec)
        clock.now += 1e6
        quiet.found_nothing(quiet.look())
        assert (quiet.bound, quiet.is_idle) == (MIN_TIME, False)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"event_time": "ts", "idle_after": "1m"}, "idle_after= is for follow=True; this stream ends with its last row"),
        ({"follow": True, "idle_after": "1m"}, "idle_after= needs event_time="),
        ({"follow": True, "event_time": "ts", "idle_after": "soon"}, "idle_after 'soon' is not a duration"),
    ],
)
@pytest.mark.parametrize("read", [ef.read_csv, ef.read_json, ef.read_parquet])
def test_idle_after_where_it_would_do_nothing_is_refused(read: Any, options: dict[str, Any], problem: str, tmp_path: Path):
    with pytest.raises(FlowError, match=problem):
        read(str(tmp_path), **options)


def test_explain_names_the_inputs_that_windows_wait_for():
    def plan(**options: Any) -> str:
        flow = ef.Dataflow("waits")
        source = ef.from_generator(lambda partition, position: iter(()), event_time="ts", schema={"ts": "int64", "k": "int64"}, **options)
        flow.read(source).key_by("k").window(ef.tumbling("1m")).aggregate(n=ef.count()).write(ef.to_list([]))
        return flow.explain()

    line = "aggregate waits for from_generator while it gives no rows; idle_after= lets a quiet partition count as idle"
    assert f"\nEvent time\n  {line}\n" in plan()
    assert "Event time" not in plan(idle_after="1m")


@pytest.mark.usefixtures("waiting_for_jobs")
def test_a_window_closes_while_its_stream_stays_quiet(clock: Clock):
    closed = list[Any]()

    def rows(partition: int, position: Any) -> Iterator[Any]:
        yield {"ts": int(clock.now), "k": 1}, 1
        for _ in range(round(patience(2_000))):
            if closed:
                return
            clock.now += 1
            yield None
        raise AssertionError("the window did not close")

    flow = ef.Dataflow("quiet")
    source = ef.from_generator(rows, unit="s", poll_every="1ms", **TIMED)
    flow.read(source).key_by("k").window(ef.tumbling("10s")).aggregate(n=ef.count()).write(ef.to_callback(closed.append))
    flow.run(runtime="local").wait()
    assert [(row["k"], row["n"]) for row in closed] == [(1, 1)]


def test_positions_of_tables_and_logs_keep_the_watermark_when_shared_out(clock: Clock, tmp_path: Path):
    for made, share_out in ((Spark, share_out_log), (Versions, share_out_versions)):
        reader = made(tmp_path).reader()
        clock.now += 31
        drained(reader, clock)
        assert [position["watermark"] for position in share_out([reader.position()], 2, "read")] == [reader.watermark()] * 2
