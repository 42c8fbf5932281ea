"""Flows that need some columns of files: rows, errors and positions are the same as when all columns are read."""

from __future__ import annotations

import csv
import threading
from collections import Counter
from datetime import timedelta

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from patience import patience

import evenflow as ef
from evenflow.connectors.formats.csv import read_csv
from evenflow.connectors.formats.parquet import read_parquet
from evenflow.engine.errors import ConnectorError
from evenflow.engine.needed import Needed
from evenflow.testing import check
from evenflow.testing.actions.crashing import with_crashes, with_damage
from evenflow.testing.actions.moving import with_moves

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")

ROWS = 60_000
"""More rows than the first megabyte of a CSV file, which is examined when a job starts."""


COLUMNS = {"key": [n % 7 for n in range(ROWS)], "text": ["a text of some length"] * ROWS, "n": list(range(ROWS)), "at": list(range(ROWS))}


@pytest.fixture
def folder(tmp_path):
    pq.write_table(pa.table(COLUMNS), tmp_path / "rows.parquet", row_group_size=20_000)
    write_csv(tmp_path / "rows.csv")
    return tmp_path


def write_csv(path, **changed):
    """Write the rows; `changed`: other values in the last row."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        rows = [list(row) for row in zip(*COLUMNS.values(), strict=True)]
        rows[-1] = [changed.get(name, value) for name, value in zip(COLUMNS, rows[-1], strict=True)]
        writer.writerows(rows)


def sources(folder, **options):
    return [read_csv(folder / "rows.csv", **options), read_parquet(folder / "rows.parquet", **options)]


def batches(reader):
    while not reader.finished:
        batch = reader.poll(5_000)
        if batch is not None:
            yield batch


def table(source):
    source.start()
    return pa.Table.from_batches([batch.rows for batch in batches(source.reader(0, 1))])


def total(source, make=lambda stream: stream):
    flow, rows = ef.Dataflow("f"), []
    make(flow.read(source)).key_by("key").aggregate(total=ef.sum("n"), emit="final").write(ef.to_list(rows))
    flow.run(runtime="local").wait("60s")
    return {row["key"]: row["total"] for row in rows}


EXPECTED = {key: sum(range(key, ROWS, 7)) for key in range(7)}


def test_columns_are_read_in_the_order_of_the_file(folder):
    for source in sources(folder):
        read = table(source.reading(Needed(frozenset({"n", "key"}))))
        assert read.to_pydict() == {"key": COLUMNS["key"], "n": COLUMNS["n"]}


def test_event_time_is_read_too_and_is_the_same(folder):
    for source in sources(folder, event_time="at"):
        some = source.reading(Needed(frozenset({"n"})))
        assert table(some).column_names == ["n", "at"]
        source.start()
        for mine, theirs in zip(batches(some.reader(0, 1)), batches(source.reader(0, 1)), strict=True):
            assert (mine.times == theirs.times).all()


def test_columns_that_may_be_there_are_read_if_they_are(folder):
    for source in sources(folder):
        assert table(source.reading(Needed(frozenset({"n"}), frozenset({"at", "nowhere"})))).column_names == ["n", "at"]


def test_all_columns_are_read_if_one_is_missing(folder):
    for source in sources(folder):
        assert table(source.reading(Needed(frozenset({"n", "nowhere"})))).column_names == list(COLUMNS)


def test_rows_are_counted_without_any_needed_column(folder):
    for source in sources(folder):
        assert table(source.reading(Needed(frozenset()))).shape == (ROWS, 1)


def test_parquet_keeps_to_the_columns_that_were_asked_for(folder):
    source = read_parquet(folder / "rows.parquet", columns=["n", "key"])
    assert table(source.reading(Needed(frozenset({"key"})))).column_names == ["key"]
    assert table(source.reading(Needed(frozenset({"text"})))).column_names == ["n", "key"]


def test_nested_columns_of_parquet_are_read_whole(folder):
    columns = {"a": [{"b": 1, "c": [2, 3]}], "a.b": ["dotted"], "tags": [["x", "y"]], "n": [1]}
    pq.write_table(pa.table(columns), folder / "nested.parquet")
    for names in (["a"], ["tags"], ["n", "tags"], ["a", "n"], ["n"]):
        read = table(read_parquet(folder / "nested.parquet").reading(Needed(frozenset(names))))
        assert read.to_pydict() == {name: column for name, column in columns.items() if name in names}


def test_parquet_gives_texts_that_are_only_compared_as_the_dictionaries_of_the_file(folder):
    texts = pa.table(
        {"few": [f"t{n % 9}" for n in range(ROWS)], "some": ["x", None] * (ROWS // 2), "many": [f"text {n}" for n in range(ROWS)]}
    )
    pq.write_table(texts, folder / "texts.parquet", dictionary_pagesize_limit=4_096)
    names = frozenset(texts.column_names)
    read = table(read_parquet(folder / "texts.parquet").reading(Needed(names, coded=names)))
    assert list(map(pa.types.is_dictionary, read.schema.types)) == [True, True, False]
    assert read.cast(texts.schema).equals(texts)
    assert table(read_parquet(folder / "texts.parquet").reading(Needed(names))).equals(texts)


def test_keys_in_dictionaries_give_the_same_results(folder):
    keys = {
        "few": [f"t{n % 9}" for n in range(ROWS)],
        "some": ["x", "y", None, "z"] * (ROWS // 4),
        "many": [f"text {n // 2}" for n in range(ROWS)],
    }
    pq.write_table(pa.table({**keys, "at": range(ROWS)}), folder / "texts.parquet", row_group_size=ROWS // 3)
    for name, values in keys.items():
        flow, rows = ef.Dataflow("f"), []
        stream = flow.read(read_parquet(folder / "texts.parquet", event_time="at", unit="us")).filter(ef.col("at") >= 100)
        stream.key_by(name).window(ef.tumbling(timedelta(microseconds=20_000))).aggregate(n=ef.count()).write(ef.to_list(rows))
        flow.run(runtime="local", parallelism=2).wait("60s")
        counted = {(row[name], row["window_start"].timestamp()): row["n"] for row in rows}
        expected = Counter((value, at // 20_000 * 20_000 / 1e6) for at, value in enumerate(values) if at >= 100)
        assert counted == expected


def test_a_job_gives_the_same_with_all_columns_and_with_some(folder):
    for source in sources(folder):
        assert total(source) == total(source, lambda stream: stream.map_batches(lambda rows: rows)) == EXPECTED


def run(source, make):
    """Run a flow that writes what `make` makes of the rows."""
    flow = ef.Dataflow("f")
    make(flow.read(source)).write(ef.to_list([]))
    flow.run(runtime="local").wait("60s")


def test_a_missing_column_is_reported_with_the_names_of_all_columns(folder):
    for source in sources(folder):
        with pytest.raises(ef.FlowError, match="no column `nowhere`; there are: key, text, n, at"):
            run(source, lambda stream: stream.select("n", "nowhere"))


def test_a_name_that_is_taken_is_refused_even_if_the_column_is_not_needed(folder):
    for source in sources(folder):
        with pytest.raises(ef.FlowError, match="two columns would have the name `text`"):
            run(source, lambda stream: stream.rename(n="text").select("text"))


def test_a_bad_cell_counts_only_in_a_column_that_is_read(folder):
    write_csv(folder / "rows.csv", at="late")
    source = read_csv(folder / "rows.csv")
    assert total(source) == EXPECTED
    with pytest.raises(ConnectorError, match=r"rows.csv can't be read after row \d+: .*In CSV column #3: .*'late'"):
        total(source, lambda stream: stream.map_batches(lambda rows: rows))


def test_a_bad_cell_of_a_column_that_is_read_is_reported_at_its_place_in_the_file(folder):
    write_csv(folder / "rows.csv", n="many")
    with pytest.raises(ConnectorError, match=r"rows.csv can't be read after row \d+: .*In CSV column #2: .*'many'"):
        total(read_csv(folder / "rows.csv"))


def test_the_start_of_a_job_looks_at_all_columns(folder):
    with pytest.raises(ConnectorError, match=r"rows.csv can't be read: .*a text of some length"):
        total(read_csv(folder / "rows.csv", schema={"text": "int64"}))
    with pytest.raises(ConnectorError, match="`schema` has a column `nowhere` that no file has"):
        total(read_csv(folder / "rows.csv", schema={"nowhere": "int64"}))


def test_a_row_with_too_many_values_is_an_error_whatever_is_read(folder):
    with (folder / "rows.csv").open("a") as file:
        file.write("1,2,3,4,5\n")
    with pytest.raises(ConnectorError, match=r"rows.csv can't be read after row \d+: .*Expected 4 columns, got 5"):
        total(read_csv(folder / "rows.csv"))


def test_all_files_must_have_the_same_columns_also_where_they_are_not_read(folder):
    pq.write_table(pa.table({"key": [1], "n": [1], "at": [1]}), folder / "other.parquet")
    (folder / "other.csv").write_text("key,n,at\n1,1,1\n")
    with pytest.raises(ConnectorError, match=r"column `text` is in .*rows.parquet but not in .*other.parquet"):
        total(read_parquet([folder / "rows.parquet", folder / "other.parquet"]))
    with pytest.raises(ConnectorError, match=r"other.csv has the columns key, n, at, but"):
        total(read_csv([folder / "rows.csv", folder / "other.csv"]))


def test_a_reader_of_some_columns_goes_on_where_one_of_all_was(folder):
    for source in sources(folder):
        some = source.reading(Needed(frozenset({"n"})))
        source.start()
        some.start()
        first = source.reader(0, 1)
        before = first.poll(7_777).rows["n"].to_pylist()
        second = some.reader(0, 1)
        second.seek(first.position())
        after = [n for batch in batches(second) for n in batch.rows["n"].to_pylist()]
        assert before + after == COLUMNS["n"]


def test_a_savepoint_of_a_job_that_read_all_columns_is_continued_by_one_that_reads_some(folder):
    seen, some_read, over = [], threading.Event(), threading.Event()

    def slowly(rows):
        seen.append(rows.num_rows)
        some_read.set()
        over.wait(0.5)  # so that the savepoint is taken before the end
        return rows

    def job_of(rows, make, **options):
        flow = ef.Dataflow("f")
        stream = make(flow.read(read_csv(folder / "rows.csv")))
        stream.key_by("key").aggregate(total=ef.sum("n"), emit="final").named("totals").write(ef.to_list(rows, name="out"))
        checkpoint = ef.CheckpointConfig(dir=str(folder / "checkpoints"), interval=None)
        return flow.run(runtime="local", config=ef.JobConfig(network=ef.NetworkConfig(source_rows=500), checkpoint=checkpoint), **options)

    first = job_of([], lambda stream: stream.map_batches(slowly))
    assert some_read.wait(patience(60))
    savepoint = first.savepoint(folder / "savepoint")
    first.cancel()
    over.set()
    first.wait("60s")
    assert 0 < sum(seen) < ROWS
    rows = []
    job_of(rows, lambda stream: stream, from_savepoint=savepoint).wait("60s")
    assert {row["key"]: row["total"] for row in rows} == EXPECTED


@pytest.mark.slow
def test_the_rows_of_simulated_jobs_that_read_some_columns_are_those_of_the_oracle(folder):
    """The oracle reads all columns of the graph's own sources."""

    def flow():
        flow = ef.Dataflow("f")
        files = read_csv(folder / "few.csv", event_time="at"), read_parquet(folder / "few.parquet", event_time="at")
        for number, source in enumerate(files):
            source.start()  # for the oracle
            bids = flow.read(source).filter(ef.col("n") > 20).cast(n="float64")
            bids.key_by("key").window(ef.tumbling("50ms")).aggregate(total=ef.sum("n")).write(ef.to_list([], name=f"rows-{number}"))
        return flow

    few = pa.table(COLUMNS).slice(0, 300)
    pq.write_table(few, folder / "few.parquet", row_group_size=70)
    pa_csv.write_csv(few, folder / "few.csv")
    assert all("reads at, key, n" in line for line in flow().explain().splitlines() if line.startswith("  read_") and "source" in line)
    check(flow, range(12), parallelism=(1, 2, 3), save_state=True, actions=with_damage(with_crashes(with_moves(2))))
