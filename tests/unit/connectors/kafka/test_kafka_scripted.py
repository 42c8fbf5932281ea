"""Every committed record is emitted once, and watermarks are true, in any order of a cluster's events."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgpack
import pytest
from patience import patience
from scripted_kafka import Log, ScriptedCluster
from seeds import blocks, proportion

from evenflow.connectors.kafka.reading.partitions import Partition, Partitions
from evenflow.connectors.kafka.reading.position import KafkaPosition, share_out_partitions
from evenflow.connectors.kafka.reading.read_plan import Extent, ReadPlan
from evenflow.connectors.kafka.reading.reader import KafkaReader
from evenflow.connectors.kafka.reading.topics import Topics
from evenflow.engine.errors import ConnectorError, FlowError
from evenflow.engine.protocol.elements import MAX_TIME, MIN_TIME

DELAY = 5
"""Microseconds by which a record may be older than one before it in its partition."""


FULL = 1_000
"""The number of runs of each kind."""


class Run:
    """Readers over a scripted cluster; every poll asserts the invariants."""

    def __init__(self, seed: int, *, bounded: bool = False) -> None:
        names = ["clicks", "views"][: 1 + seed % 2]
        self.cluster = cluster = ScriptedCluster(seed, names)
        self.choose = cluster.random
        self.numbers = 0
        self.clock = 0
        for name in names:
            for partition in range(self.choose.randint(1, 3)):
                cluster.logs[name, partition] = Log()
        self.late_partitions: set[tuple[str, int]] = set()
        for _ in range(self.choose.randint(0, 20)):
            self.write()
        self.plan = cluster.plan()
        if bounded:
            self.bound()
        self.start(self.choose.randint(1, 4))
        self.checkpoint()

    def bound(self) -> None:
        """Limit reading to the present records."""
        extents = {o: Extent(0, 0, self.cluster.logs[self.cluster.topics.at(o)].stable) for o in self.plan.extents}
        self.plan = replace(self.plan, extents=extents, endless=False)

    def write(self) -> None:
        """Write a transaction to some partition, with or without a marker, or an aborted one, which leaves only its offsets."""
        log = self.cluster.logs[self.choose.choice(sorted(self.cluster.logs))]
        self.clock += self.choose.choice([0, 1, DELAY, 20, 5_000_000])
        aborted = self.choose.random() < 0.2
        for _ in range(self.choose.randint(1, 4)):
            if aborted:
                log.end += 1
            else:
                log.append(self.cluster.value(self.numbers, 1_000 + self.clock + self.choose.randint(0, DELAY)))
                self.numbers += 1
        log.commit(marker=aborted or self.choose.random() < 0.5)

    def start(self, parallelism: int, positions: list[Any] | None = None) -> None:
        self.readers = [self.cluster.reader(self.plan, index, parallelism) for index in range(parallelism)]
        for reader, position in zip(self.readers, positions or [], strict=bool(positions)):
            reader.seek(position)
        self.told = [MIN_TIME] * parallelism

    def positions(self) -> list[Any]:
        return [msgpack.unpackb(msgpack.packb(reader.position())) for reader in self.readers]

    def checkpoint(self) -> None:
        self.saved: tuple[list[Any], list[tuple[Any, ...]]] = self.positions(), list(getattr(self, "rows", []))
        self.rows = list(self.saved[1])

    def recover(self) -> None:
        """Restore the last checkpoint, perhaps with another number of readers."""
        positions, self.rows = self.saved[0], list(self.saved[1])
        self.start_shared_out(positions)

    def scale(self) -> None:
        self.start_shared_out(self.positions())

    def start_shared_out(self, positions: list[Any]) -> None:
        parallelism = self.choose.randint(1, 4)
        decoded = [KafkaPosition.decode(position) for position in positions]
        shared = share_out_partitions(decoded, parallelism, "clicks")
        assert min(position.earliest for position in shared) == min(position.earliest for position in decoded)
        self.start(parallelism, [position.encode() for position in shared])

    def poll(self, place: int) -> None:
        reader, most = self.readers[place], self.choose.randint(1, 6)
        before = reader.watermark()
        assert before >= self.told[place]
        batch = reader.poll(most)
        if batch is not None:
            assert 0 < batch.num_rows <= most
            assert batch.times is not None
            for row, time in zip(batch.to_rows(), batch.times.tolist(), strict=True):
                assert row["ts"] == time
                if (row["topic"], row["partition"]) not in self.late_partitions:
                    assert time >= before
                self.rows.append((row["topic"], row["partition"], row["offset"], row["n"]))
        assert reader.watermark() >= before
        self.told[place] = reader.watermark()

    def step(self, *, grows: bool) -> None:
        self.cluster.now += self.choose.random()
        chance = self.choose.random()
        if chance < 0.7:
            self.poll(self.choose.randrange(len(self.readers)))
        elif chance < 0.85:
            self.write()
        elif chance < 0.9:
            self.checkpoint()
        elif chance < 0.93:
            self.recover()
        elif chance < 0.96:
            self.scale()
        elif grows and chance < 0.98:
            name = self.choose.choice(self.cluster.topics.names)
            place = name, sum(topic == name for topic, _ in self.cluster.logs)
            self.cluster.logs[place] = Log()
            self.late_partitions.add(place)

    def drain(self, expected: int) -> None:
        for _ in range(3_000):
            if len(self.rows) >= expected and all(reader.backlog() == 0 for reader in self.readers):
                return
            self.cluster.now += 0.5
            for place in range(len(self.readers)):
                self.poll(place)

    def check(self, below: dict[tuple[str, int], int] | None = None) -> None:
        committed = sorted(
            (*place, offset)
            for place, log in self.cluster.logs.items()
            for offset in log.records
            if offset < (log.stable if below is None else below.get(place, 0))
        )
        assert sorted(row[:3] for row in self.rows) == committed
        for place in self.cluster.logs:
            offsets = [row[2] for row in self.rows if row[:2] == place]
            assert offsets == sorted(offsets)


def endless(seed: int) -> None:
    """Let records arrive while readers poll, fail and are scaled; finally everything is read."""
    run = Run(seed)
    try:
        for _ in range(120):
            run.step(grows=True)
        run.drain(sum(len(log.records) for log in run.cluster.logs.values()))
        run.check()
    except BaseException as error:
        error.add_note(f"seed {seed}")
        raise


def endless_runs(count: int) -> None:
    """Run the first `count` seeds."""
    for seed in range(count):
        endless(seed)


@pytest.mark.few(1)
@pytest.mark.parametrize("seeds", blocks(FULL, 25, proportion(2 * FULL)), ids=str)
def test_every_committed_record_is_given_once_whatever_comes_when(seeds):
    for seed in seeds:
        endless(seed)


@pytest.mark.few(1)
@pytest.mark.parametrize("seeds", blocks(FULL, 25, proportion(2 * FULL)), ids=str)
def test_all_up_to_the_ends_is_given_and_then_the_readers_have_finished(seeds):
    for seed in seeds:
        run = Run(seed, bounded=True)
        try:
            ends = {run.cluster.topics.at(o): extent.stop for o, extent in run.plan.extents.items()}
            for _ in range(80):
                run.step(grows=True)
            for _ in range(3_000):
                if all(reader.finished for reader in run.readers):
                    break
                for place in range(len(run.readers)):
                    run.poll(place)
            assert all(reader.finished and reader.watermark() == MAX_TIME for reader in run.readers), "it never ends"
            run.check({place: end or 0 for place, end in ends.items()})
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


def positions_ahead(self: Any) -> Any:
    """Return a position after the fetched records."""
    encoded = POSITION(self)
    return {**encoded, "offsets": [[p.ordinal, p.fetched, p.newest] for p in self._partitions]}


def bound_too_late(self: Any, partition: Partition, now: float, today: int) -> int:
    """Return a watermark without `max_delay`."""
    return MIN_TIME if partition.newest is None else partition.newest


def hold_all(self: Any, records: list[Any]) -> None:
    """Emit records again that were fetched again."""
    self.held.append(records)
    self.skip_to(records[-1].offset() + 1)


def skip_held(self: Any, offset: int) -> None:
    """Skip held records to the end after them."""
    self.fetched = self.next = max(self.fetched, offset)


POSITION = KafkaReader.position

FAULTS = [
    pytest.param(KafkaReader, "position", positions_ahead, id="the position is ahead of what was given"),
    pytest.param(Partitions, "_bound", bound_too_late, id="the watermark forgets max_delay"),
    pytest.param(Partition, "hold", hold_all, id="records that come again are given again"),
    pytest.param(Partition, "skip_to", skip_held, id="an end is taken for what was given"),
    pytest.param(
        Topics, "belongs_to", staticmethod(lambda ordinal, index, parallelism: index == 0), id="one reader takes all at a reassignment"
    ),
]


@pytest.mark.parametrize(("kind", "name", "fault"), FAULTS)
def test_a_planted_fault_shows(kind, name, fault, monkeypatch):
    monkeypatch.setattr(kind, name, fault)
    with pytest.raises((AssertionError, KeyError)):
        endless_runs(60)


class Quiet:
    """One reader over partitions that the test fills; all records arrive at once."""

    def __init__(self, partitions: int, **more: Any) -> None:
        self.cluster = ScriptedCluster(0, ["clicks"])
        for partition in range(partitions):
            self.cluster.logs["clicks", partition] = Log()
        self.plan: ReadPlan = self.cluster.plan(**more)
        self.reader: KafkaReader = self.cluster.reader(self.plan, 0, 1)

    def put(self, partition: int, *times: int) -> None:
        log = self.cluster.logs["clicks", partition]
        for time in times:
            log.append(self.cluster.value(time, time))
        log.commit(marker=False)

    def settle(self, seconds: float = patience(60)) -> list[int]:
        """Poll for some seconds and return the numbers of the rows."""
        rows = []
        until = self.cluster.now + seconds
        while self.cluster.now < until:
            self.cluster.now += 0.25
            batch = self.reader.poll(100)
            rows += [] if batch is None else [row["n"] for row in batch.to_rows()]
        return rows


def test_a_partition_without_records_holds_event_time_back():
    quiet = Quiet(2)
    quiet.put(0, 50)
    assert quiet.settle() == [50]
    assert quiet.reader.watermark() == MIN_TIME


def test_a_partition_that_is_quiet_at_its_end_counts_with_the_clock_less_max_delay():
    quiet = Quiet(2, idle_after=10.0)
    now = round(quiet.cluster.now * 1e6)
    quiet.put(0, now)
    quiet.settle(8)
    assert quiet.reader.watermark() == MIN_TIME
    quiet.put(0, now + 30_000_000)
    quiet.settle(9)
    assert quiet.reader.watermark() >= now + 10_000_000 - DELAY
    assert quiet.reader.watermark() <= quiet.cluster.now * 1e6 - DELAY


def test_a_partition_that_is_far_behind_is_not_idle_however_quiet_it_is():
    quiet = Quiet(2, idle_after=10.0)
    quiet.put(0, 50)
    quiet.settle(2)
    quiet.put(1, 10, 20, 30)
    quiet.reader._consumer.pause([_Place("clicks", 1)])
    quiet.settle(100)
    assert quiet.reader.watermark() == MIN_TIME


def test_event_time_of_a_partition_that_was_idle_never_goes_back():
    quiet = Quiet(1, idle_after=10.0)
    quiet.put(0, 50)
    quiet.settle(30)
    before = quiet.reader.watermark()
    assert before > 900_000_000
    quiet.put(0, 60)
    assert quiet.settle(5) == [60]
    assert quiet.reader.watermark() == before


def test_a_reader_without_partitions_is_not_behind_the_clock():
    quiet = Quiet(1)
    reader = quiet.cluster.reader(quiet.plan, 1, 2)
    assert quiet.cluster.now * 1e6 - 200_000 <= reader.watermark() <= quiet.cluster.now * 1e6


def test_without_event_time_nothing_is_held_back():
    assert Quiet(1, event_time=None).reader.watermark() == MAX_TIME


def test_the_partition_that_is_behind_gives_first():
    quiet = Quiet(2)
    minute = 60_000_000
    quiet.put(0, *(number * minute for number in range(1, 40)))
    assert len(quiet.settle(20)) == 39
    quiet.put(0, *(number * minute for number in range(100, 140)))
    quiet.put(1, *(number * minute for number in range(60)))
    rows = quiet.settle(60)
    assert sorted(rows) == sorted([*(n * minute for n in range(100, 140)), *(n * minute for n in range(60))])
    behind = rows.index(59 * minute)
    assert sum(row >= 100 * minute for row in rows[:behind]) <= 20


def test_lost_offsets_stop_the_job_and_say_which():
    quiet = Quiet(1)
    quiet.put(0, *range(1, 11))
    quiet.cluster.logs["clicks", 0].first = 4
    with pytest.raises(
        ConnectorError, match=r"operator `clicks`: partition 0 of topic `clicks`: offsets 0 to 3 are no longer there.*earliest"
    ):
        quiet.settle()


def test_lost_offsets_can_be_skipped():
    quiet = Quiet(1, on_lost_offsets="earliest")
    quiet.put(0, *range(1, 11))
    quiet.cluster.logs["clicks", 0].first = 4
    assert quiet.settle() == [5, 6, 7, 8, 9, 10]


@pytest.mark.parametrize("on_lost_offsets", ["stop", "earliest"])
def test_a_topic_that_ends_before_what_was_read_is_another_one(on_lost_offsets):
    quiet = Quiet(1, on_lost_offsets=on_lost_offsets)
    quiet.put(0, 1, 2, 3)
    quiet.settle(5)
    position = quiet.reader.position()
    quiet.cluster.logs["clicks", 0] = Log()
    quiet.reader = quiet.cluster.reader(quiet.plan, 0, 1)
    quiet.reader.seek(position)
    with pytest.raises(ConnectorError, match=r"partition 0 of topic `clicks` ends at offset 0, but was read up to 3: .*recreated"):
        quiet.settle()


def test_a_topic_with_another_id_is_another_one():
    quiet = Quiet(1, ids=("before",))
    reader = quiet.cluster.reader(quiet.cluster.plan(ids=("after",)), 0, 1)
    with pytest.raises(ConnectorError, match=r"topic `clicks` was deleted and recreated after the checkpoint \(id before"):
        reader.seek(quiet.reader.position())


def test_a_checkpoint_of_other_topics_is_refused():
    other = ScriptedCluster(0, ["views"])
    with pytest.raises(ConnectorError, match=r"the checkpoint is of the topics clicks, this flow reads views"):
        other.reader(other.plan(), 0, 1).seek(Quiet(1).reader.position())


def test_positions_that_do_not_belong_together_are_refused():
    quiet = Quiet(2)
    readers = [quiet.cluster.reader(quiet.plan, index, 2) for index in range(2)]
    one = KafkaPosition.decode(readers[0].position())
    for wrong in ([one], [one, one], []):
        with pytest.raises(FlowError, match=r"are not those of all its"):
            share_out_partitions(wrong, 3, "clicks")


def test_a_partition_that_was_unknown_at_the_checkpoint_is_read_from_its_beginning():
    quiet = Quiet(1)
    position = quiet.reader.position()
    quiet.cluster.logs["clicks", 1] = Log()
    quiet.put(1, 7, 8)
    later = quiet.cluster.plan()
    later = replace(later, extents={**later.extents, 1: Extent(0, 2, None)})  # start="latest"
    quiet.reader = quiet.cluster.reader(later, 0, 1)
    quiet.reader.seek(position)
    assert quiet.settle(10) == [7, 8]


class _Place:
    def __init__(self, topic: str, partition: int) -> None:
        self.topic, self.partition = topic, partition
