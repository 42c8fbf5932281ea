"""Writers of a sink with new settings prepare what the older sink commits, retracts and removes."""

from __future__ import annotations

import csv
import json
import sqlite3

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenflow.connectors.formats.csv_sink import write_csv
from evenflow.connectors.formats.json_sink import write_json
from evenflow.connectors.formats.parquet_sink import write_parquet
from evenflow.connectors.sql.sink import write_sql
from evenflow.engine.batch import Batch

RUN = "0123456789abcdef"


def batch(*numbers):
    return Batch(pa.record_batch({"n": list(numbers)}))


def begun(sink, checkpoints=None):
    sink.of_job("job", "write", checkpoints)
    sink.of_run(RUN, continues=False)
    sink.start()
    return sink


def numbers(folder):
    found = []
    for path in sorted(folder.glob("part-*")):
        if path.suffix == ".parquet":
            found += pq.read_table(path).column("n").to_pylist()
        elif path.suffix == ".json":
            found += [json.loads(line)["n"] for line in path.read_text().splitlines()]
        else:
            found += [int(row["n"]) for row in csv.DictReader(path.read_text().splitlines())]
    return sorted(found)


FILES = [
    pytest.param(write_parquet, {"compression": "gzip", "rows_per_group": 1, "roll_bytes": 10}, id="parquet"),
    pytest.param(write_csv, {"roll_bytes": 1}, id="csv"),
    pytest.param(write_json, {"append": True, "roll_after": "1m"}, id="json"),
]


@pytest.mark.parametrize(("write", "options"), FILES)
def test_older_sink_commits_files_of_new_writers_next_to_its_own(tmp_path, write, options):
    old = begun(write(tmp_path))
    new = write(tmp_path, **options).continuing(old)
    before, after = old.writer(0, 2), new.writer(1, 2)
    before.write(batch(1, 2))
    after.write(batch(3))
    after.write(batch(4))
    assert numbers(tmp_path) == []
    old.commit(1, [*before.prepare(1), *after.prepare(1)])
    assert numbers(tmp_path) == [1, 2, 3, 4]


@pytest.mark.parametrize(("write", "options"), FILES)
def test_older_sink_retracts_and_sweeps_files_of_new_writers(tmp_path, write, options):
    old = begun(write(tmp_path))
    writer = write(tmp_path, **options).continuing(old).writer(0, 1)
    for checkpoint in (1, 2):
        writer.write(batch(checkpoint))
        old.commit(checkpoint, writer.prepare(checkpoint))
    old.retract(1)
    assert numbers(tmp_path) == [1]
    writer.write(batch(3))
    writer.prepare(3)
    assert any(path.name.endswith(".prepared") for path in tmp_path.iterdir())
    old.sweep()
    assert not any(path.name.endswith(".prepared") for path in tmp_path.iterdir())


def test_new_settings_of_files_are_in_effect(tmp_path):
    old = begun(write_parquet(tmp_path))
    writer = write_parquet(tmp_path, compression="gzip", rows_per_group=1).continuing(old).writer(0, 1)
    writer.write(batch(1))
    writer.write(batch(2))
    old.commit(1, writer.prepare(1))
    (path,) = tmp_path.glob("part-*")
    metadata = pq.ParquetFile(path).metadata
    assert (metadata.num_row_groups, metadata.row_group(0).column(0).compression) == (2, "GZIP")


def test_older_sink_commits_rows_that_a_new_writer_stages_for_a_table(tmp_path):
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("create table t (n integer)")
    old = begun(write_sql(f"sqlite:///{tmp_path}/a.db", "t"), f"{tmp_path}/saved")
    new = write_sql(f"sqlite:///{tmp_path}/a.db", "t").continuing(old)
    assert new.place == old.place
    writer = new.writer(0, 1)
    writer.write(batch(5))
    committables = writer.prepare(1)
    old.commit(1, committables)
    old.commit(1, committables)
    with sqlite3.connect(tmp_path / "a.db") as connection:
        assert connection.execute("select n from t").fetchall() == [(5,)]


def test_new_kafka_writer_stages_for_the_run_of_the_older_sink(tmp_path):
    pytest.importorskip("confluent_kafka")
    from evenflow.connectors.kafka.writing.sink import write_kafka

    old = write_kafka("clicks", bootstrap="here:9092")
    old.of_job("job", "write", f"{tmp_path}/saved")
    old._most_bytes = 1000
    new = write_kafka("clicks", bootstrap="here:9092", headers={"from": "n"}).continuing(old)
    assert (new.place, new._most_bytes) == (old.place, 1000)
    (tmp_path / "saved" / "staged-write").mkdir(parents=True)
    writer = new.writer(0, 1)
    writer.write(batch(5))
    (committable,) = writer.prepare(1)
    assert committable["run"] == old.run
