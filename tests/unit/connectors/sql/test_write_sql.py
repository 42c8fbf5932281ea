"""Jobs that write into tables, on the local runtime."""

from __future__ import annotations

import sqlite3
import uuid
from contextlib import closing

import psycopg
import pyarrow as pa
import pytest

import evenflow as ef
from evenflow.engine.batch import Batch

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")


@pytest.fixture
def shop(tmp_path):
    """Create a SQLite file with a table."""
    path = tmp_path / "my shop.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE counts (user TEXT PRIMARY KEY, n INTEGER)")
    return path


def rows_of(path, query="SELECT * FROM counts ORDER BY 1"):
    with closing(sqlite3.connect(path)) as database:
        return database.execute(query).fetchall()


def url_of(path):
    return f"sqlite:///{path}".replace(" ", "%20")


def counting(users, sink):
    flow = ef.Dataflow("counting")
    flow.read(ef.from_items([{"user": user} for user in users])).key_by("user").aggregate(n=ef.count()).write(sink)
    return flow


def test_updates_of_a_count_leave_the_last_of_each_key(shop):
    counting("abbacca", ef.write_sql(url_of(shop), "counts", mode="upsert", key="user", version="n")).run(runtime="local").wait()
    assert rows_of(shop) == [("a", 3), ("b", 2), ("c", 2)]


def test_a_job_that_starts_again_from_nothing_is_another_run(shop):
    flow = counting("ab", ef.write_sql(url_of(shop), "counts", mode="upsert", key="user"))
    for _ in range(2):
        flow.run(runtime="local").wait()
    assert rows_of(shop) == [("a", 1), ("b", 1)]
    assert len(rows_of(shop, "SELECT * FROM evenflow_commits")) == 2


def test_rows_in_postgres(postgres):
    table = f"counts_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(postgres.url, autocommit=True) as database:
        database.execute(f'CREATE TABLE {table} ("user" text PRIMARY KEY, n bigint, at timestamptz DEFAULT now())')
        counting("abbacca", ef.write_sql(postgres.url, table, mode="upsert", key="user", version="n")).run(runtime="local").wait()
        assert database.execute(f'SELECT "user", n FROM {table} ORDER BY 1').fetchall() == [("a", 3), ("b", 2), ("c", 2)]


MOVES = [("ann", "Rome"), ("bob", "Rome"), ("ann", "Oslo"), ("bob", "Oslo"), ("ann", "Bern"), ("bob", "Rome")]


def places(sink, keep=None):
    """Write how many users are in each city, by each user's last one."""
    flow = ef.Dataflow("places")
    rows = [{"user": user, "city": city, "at": at} for at, (user, city) in enumerate(MOVES)]
    last = flow.read(ef.from_items(rows)).key_by("user").aggregate(city=ef.last("city"))
    users = last.key_by("city").aggregate(n=ef.count())
    (users if keep is None else users.filter(keep)).write(sink)
    return flow


@pytest.mark.parametrize("interval", ["1h", "1ms"])
def test_groups_without_rows_are_deleted_from_the_table(shop, tmp_path, interval):
    with closing(sqlite3.connect(shop)) as database:
        database.execute("CREATE TABLE cities (city TEXT PRIMARY KEY, n INTEGER)")
    sink = ef.write_sql(url_of(shop), "cities", mode="upsert", key="city")
    checkpoint = ef.CheckpointConfig(str(tmp_path / "checkpoints"), interval=interval)
    config = ef.JobConfig(checkpoint=checkpoint, network=ef.NetworkConfig(source_rows=1))
    places(sink).run(runtime="local", config=config).wait()
    assert rows_of(shop, "SELECT * FROM cities ORDER BY 1") == [("Bern", 1), ("Rome", 1)]


def test_rows_that_a_filter_no_longer_passes_are_deleted_from_postgres(postgres, tmp_path):
    table = f"cities_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(postgres.url, autocommit=True) as database:
        database.execute(f"CREATE TABLE {table} (city text PRIMARY KEY, n bigint)")
        database.execute(f"INSERT INTO {table} VALUES ('Turin', 7)")
        sink = ef.write_sql(postgres.url, table, mode="upsert", key="city")
        checkpoint = ef.CheckpointConfig(str(tmp_path / "checkpoints"), interval="1ms")
        config = ef.JobConfig(checkpoint=checkpoint, network=ef.NetworkConfig(source_rows=1))
        places(sink, keep=ef.col("n") < 2).run(runtime="local", config=config).wait()
        assert database.execute(f"SELECT city, n FROM {table} ORDER BY 1").fetchall() == [("Bern", 1), ("Rome", 1), ("Turin", 7)]


def test_row_whose_key_is_null_is_refused_because_nothing_could_replace_it(shop):
    users = ef.Dataflow("f").read(ef.from_items([{"user": "a"}, {"user": None}]))
    users.key_by("user").aggregate(n=ef.count()).write(ef.write_sql(url_of(shop), "counts", mode="upsert", key="user", name="totals"))
    with pytest.raises(ef.RecordError, match=r"operator `totals`: column `user` of the key is null.*fill_null"):
        users.flow.run(runtime="local").wait("30s")
    assert rows_of(shop) == []


@pytest.mark.parametrize(("key", "version"), [("n", None), (["user"], None), (["user", "city", "n"], "n")])
def test_key_that_is_not_the_aggregates_is_refused_when_the_flow_is_written(shop, key, version):
    flow = ef.Dataflow("counting")
    counts = flow.read(ef.from_items([{"user": "a", "city": "b"}])).key_by("user", "city").aggregate(n=ef.count())
    with pytest.raises(ef.FlowError, match="its rows are updates by user, city, and key= has "):
        counts.write(ef.write_sql(url_of(shop), "counts", mode="upsert", key=key, version=version))


def totals():
    """Return a stream of updates whose key is two columns."""
    rows = ef.Dataflow("counting").read(ef.from_items([{"user": "a", "city": "Rome", "id": 1}]))
    return rows.key_by("user", "city").aggregate(n=ef.count(), newest=ef.max("id"))


def test_key_of_the_updates_may_be_in_another_order_longer_and_renamed():
    for key in (["city", "user"], ["user", "n", "city"]):
        totals().write(ef.write_sql("sqlite:///shop.db", "counts", mode="upsert", key=key))
    totals().rename(user="name").write(ef.write_sql("sqlite:///shop.db", "counts", mode="upsert", key=["name", "city"]))


def test_append_mode_and_updates_that_a_function_changed_have_any_key():
    totals().write(ef.write_sql("sqlite:///shop.db", "changes"))
    totals().map(lambda row: {"id": row["user"] + row["city"]}).write(ef.write_sql("sqlite:///shop.db", "counts", mode="upsert", key="id"))


def test_nothing_staged_is_left_behind(shop, tmp_path):
    folder = tmp_path / "checkpoints"
    config = ef.JobConfig(checkpoint=ef.CheckpointConfig(str(folder), interval="1h"))
    counting("ab", ef.write_sql(url_of(shop), "counts", mode="upsert", key="user")).run(runtime="local", config=config).wait()
    assert rows_of(shop) == [("a", 1), ("b", 1)]
    assert list(folder.rglob("*.staged*")) == []


def test_staged_rows_are_written_by_the_next_process(shop, tmp_path):
    first = ef.write_sql(url_of(shop), "counts", mode="upsert", key="user")
    first.of_job("counting", "write_sql", str(tmp_path / "checkpoints"))
    first.start()
    writer = first.writer(0, 1)
    writer.write(Batch(pa.record_batch({"user": ["a"], "n": [1]})))
    staged = writer.prepare(1)
    second = ef.write_sql(url_of(shop), "counts", mode="upsert", key="user")
    second.of_job("counting", "write_sql", str(tmp_path / "checkpoints"))
    second.start()
    for _ in range(2):
        second.commit(1, staged)
    assert rows_of(shop) == [("a", 1)]


def test_staged_file_that_was_removed_is_an_error_that_names_the_table(shop, tmp_path):
    sink = ef.write_sql(url_of(shop), "counts")
    sink.of_job("counting", "write_sql", str(tmp_path / "checkpoints"))
    sink.start()
    writer = sink.writer(0, 1)
    writer.write(Batch(pa.record_batch({"user": ["a"], "n": [1]})))
    staged = writer.prepare(1)
    next((tmp_path / "checkpoints").rglob("*.staged")).unlink()
    with pytest.raises(ef.ConnectorError, match=r"rows that were staged for `counts` can't be read: .* is missing"):
        sink.commit(1, staged)
    assert rows_of(shop) == []


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"mode": "replace"}, 'expected "append" or "upsert"'),
        ({"mode": "upsert"}, 'mode="upsert" goes with key='),
        ({"key": "user"}, 'mode="upsert" goes with key='),
        ({"version": "n"}, 'version= goes with mode="upsert"'),
        ({"table": ""}, "it must be a table's name"),
        ({"url": "mysql://me@db/shop"}, "expected a url such as postgresql://user@host/database"),
        ({"url": "shop.db"}, "expected a url such as"),
        ({"url": "sqlite://shop.db"}, "expected a url such as"),
    ],
)
def test_wrong_arguments_are_refused(options, problem):
    with pytest.raises(ef.FlowError, match=problem):
        ef.write_sql(**{"url": "sqlite:///shop.db", "table": "counts", **options})


def test_key_that_rows_do_not_have_is_refused_before_the_run(shop):
    flow = ef.Dataflow("clicks")
    flow.read(ef.from_items([{"user": "a"}])).write(ef.write_sql(url_of(shop), "counts", mode="upsert", key="customer"))
    with pytest.raises(ef.EvenflowError, match=r"column `customer`"):
        flow.run(runtime="local").wait()


def test_password_is_in_no_description():
    sink = ef.write_sql("postgresql://me:secret@db/shop", "counts")
    flow = counting("ab", sink)
    assert "secret" not in flow.explain() + repr(sink)
