"""A source that continues another one reads its splits from its positions, with the columns and rows that the new flow needs."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from evenflow.connectors.formats.csv import read_csv
from evenflow.connectors.formats.parquet import read_parquet
from evenflow.connectors.generated.generate import generate
from evenflow.engine.expressions.expression import col
from evenflow.engine.needed import Needed
from evenflow.engine.source import Source

TABLE = pa.table({"a": list(range(6)), "b": list("uvwxyz"), "c": [1.0] * 6})


def rows(reader, most=100):
    found = []
    while not reader.finished:
        batch = reader.poll(most)
        found += [] if batch is None else batch.to_rows()
    return found


@pytest.fixture
def folder(tmp_path):
    for place in range(3):
        piece = TABLE.slice(place * 2, 2)
        pq.write_table(piece, tmp_path / f"{place}.parquet")
        pyarrow.csv.write_csv(piece, tmp_path / f"{place}.csv")
    return tmp_path


@pytest.mark.parametrize("read", [read_parquet, read_csv])
def test_files_are_read_from_the_position_with_other_columns(folder, read):
    old = read(folder).reading(Needed(frozenset({"a"})))
    old.start()
    reader = old.reader(0, 1)
    first = reader.poll(2).to_rows()
    for path in list(folder.glob("0.*")):
        path.with_stem("+").write_bytes(path.read_bytes())  # the first file in a list of those that are there now
    new = read(folder).reading(Needed(frozenset({"a", "b"})))
    assert new.continues(old) is None
    going_on = new.continuing(old).reader(0, 1)
    going_on.seek(reader.position())
    assert first == [{"a": 0}, {"a": 1}]
    assert rows(going_on) == [{"a": n, "b": "uvwxyz"[n]} for n in range(2, 6)]
    assert old.known_columns().lacks("b")


def test_row_groups_that_the_older_filter_dropped_are_read(folder):
    old = read_parquet(folder).where([(col("a") < 2).tree])
    old.start()
    assert [row["a"] for row in rows(old.reader(0, 1))] == [0, 1]
    new = read_parquet(folder).where([(col("a") < 6).tree])
    assert [row["a"] for row in rows(new.continuing(old).reader(0, 1))] == [0, 1, 2, 3, 4, 5]


def test_new_pauses_of_a_followed_folder_are_in_effect(folder):
    old = read_parquet(folder, follow=True, poll_every="1s")
    old.start()
    new = read_parquet(folder, follow=True, poll_every="9s").continuing(old)
    assert new.follow.poll_every == 9
    assert new.known_columns() == old.known_columns()


def test_rate_of_generated_rows_is_the_new_one():
    assert generate(rate=5.0, event_rate=1.0).continuing(generate(rate=3.0, event_rate=1.0)).rate == 5.0


def test_source_without_a_way_to_continue_reads_no_other_columns():
    class Narrow(Source):
        name = "narrow"

        def reading(self, needed):
            narrow = Narrow()
            narrow.needed = needed
            return narrow

        def reader(self, index, parallelism):
            raise NotImplementedError

    one, other = (Narrow().reading(Needed(frozenset({name}))) for name in "ab")
    assert one.continues(other) == "it can't read other columns or rows while the job runs"
    assert one.continues(one) is None
    assert one.continuing(other) is other


def test_kafka_source_continues_with_its_own_client_and_the_offsets_of_the_older_one():
    pytest.importorskip("confluent_kafka")
    from evenflow.connectors.kafka.reading.read_plan import ReadPlan
    from evenflow.connectors.kafka.reading.source import read_kafka

    def source(columns, **options):
        given = read_kafka("clicks", bootstrap="here:9092", schema={"a": "int64", "b": "string"}, **options)
        return given.reading(Needed(frozenset(columns)))

    old = source("a")
    decoder, columns = old._narrowed(old._decoder)
    old._plan = ReadPlan(
        cluster=old._cluster, topics=old._topics, ids=("7",), extents={}, endless=True, decoder=decoder, columns=columns, event_time=None,
        by_timestamp=False, idle_after=None, on_error="stop", on_lost_offsets="stop", group_id=None, discover_every=30.0,
    )  # fmt: skip
    new = source("ab", group_id="lag", on_error="skip", discover_every="5s", options={"fetch.max.bytes": 1000})
    plan = new.continuing(old)._plan
    assert (plan.ids, plan.group_id, plan.on_error, plan.discover_every) == (("7",), "lag", "skip", 5.0)
    assert (plan.decoder.schema.names, plan.cluster.options["fetch.max.bytes"]) == (["a", "b"], 1000)
    assert old._plan.decoder.schema.names == ["a"]
