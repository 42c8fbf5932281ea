"""Snapshots of an Iceberg table as they appear: each row once, in order, with true watermarks, despite losses and reassignments."""

from __future__ import annotations

import random
import threading
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from iceberg_tables import catalog_options, created, table_of
from patience import patience
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update import AddSnapshotUpdate
from readers_at_random import Readers

import evenflow as ef
from evenflow.testing import check_source

SCHEMA = pa.schema({"ts": pa.int64(), "n": pa.int64()})

MAX_DELAY = 5
"""Milliseconds by which a row may be older than one before it in its file, or in an earlier snapshot."""

TIMED: dict[str, Any] = {"event_time": "ts", "max_delay": MAX_DELAY / 1000}

Row = tuple[int, int]


def rows_as_table(rows: list[Row]) -> pa.Table:
    return pa.table([[ts for ts, _ in rows], [n for _, n in rows]], SCHEMA)


def append(table: Table, folder: Path, *files: list[Row], statistics: bool = True) -> list[Path]:
    """Append a snapshot with these files, which have no field ids."""
    paths = [folder / f"part-{uuid.uuid4()}.parquet" for _ in files]
    for path, rows in zip(paths, files, strict=True):
        pq.write_table(rows_as_table(rows), path, row_group_size=3, write_statistics=statistics)
    table.refresh().add_files([str(path) for path in paths], check_duplicate_files=False)
    return paths


def compact(table: Table) -> None:
    """Replace a data file by a copy, as a snapshot that changes no row."""
    transaction = table.refresh().transaction()
    with transaction.update_snapshot().overwrite() as snapshot:
        for task in list(table.scan().plan_files())[:1]:
            snapshot.delete_data_file(task.file)
            path = Path(task.file.file_path)
            copy = path.with_name(f"copy-{uuid.uuid4()}.parquet")
            copy.write_bytes(path.read_bytes())
            snapshot.append_data_file(DataFile.from_args(**{**fields_of(task.file), "file_path": str(copy)}))
    for update in transaction._updates:
        if isinstance(update, AddSnapshotUpdate):
            update.snapshot.summary.__dict__["operation"] = Operation.REPLACE  # the library writes no such snapshots
    transaction.commit_transaction()


def fields_of(file: Any) -> dict[str, Any]:
    names = ("content", "file_path", "file_format", "partition", "record_count", "file_size_in_bytes", "spec_id")
    return {name: getattr(file, name) for name in names}


def started(folder: Path, **options: Any) -> Any:
    given = {"follow": True, "poll_every": "1us", **TIMED, **options}
    source = ef.read_iceberg("shop.rows", catalog="test", options=catalog_options(folder), **given)
    source.start()
    return source


def grow(table: Table, folder: Path, random: random.Random, files: list[list[int]], newest: int, *, followed: bool) -> int:
    """Append a snapshot: rows, or (if `followed`, since they would be read in any order) the same rows in another file."""
    if random.random() < 0.15 and files and followed:
        compact(table)
        return newest
    new, before = list[list[Row]](), newest
    for _ in range(random.randint(1, 3)):
        rows, time = list[Row](), before
        for place in range(random.randint(0, 7)):
            time += random.randint(0, 3)
            rows.append((max(time - random.randint(0, MAX_DELAY), before - MAX_DELAY), 100 * len(files) + place))
            newest = max(newest, rows[-1][0])
        files.append([n for _, n in rows])
        new.append(rows)
    append(table, folder, *new, statistics=random.random() < 0.7)
    return newest


@pytest.mark.slow
def test_every_row_comes_once_and_in_order_whatever_is_added_and_lost_when(tmp_path_factory):
    for seed in range(2):
        folder, dice = tmp_path_factory.mktemp("table"), random.Random(seed)
        table = created(folder, SCHEMA)
        files, newest = list[list[int]](), 1_000
        for _ in range(dice.randint(0, 2)):
            newest = grow(table, folder, dice, files, newest, followed=False)
        readers = Readers(started(folder), dice.randint(1, 3))
        for _ in range(40):
            if dice.random() < 0.2:
                newest = grow(table, folder, dice, files, newest, followed=True)
            else:
                readers.disturb(dice, polls=0.66, saves=0.14, shares=0.1, most_rows=6)
        came = readers.drain()
        assert sorted(came) == [n for file in files for n in file], f"seed {seed}"
        for number, rows in enumerate(files):
            assert [n for n in came if n // 100 == number] == rows, f"seed {seed}"


@pytest.mark.slow
def test_source_holds_its_contract(tmp_path):
    table = created(tmp_path, SCHEMA)
    append(table, tmp_path, *([(1_000 + number, 100 * number + place) for place in range(4)] for number in range(6)))
    check_source(
        ef.read_iceberg("shop.rows", catalog="test", options=catalog_options(tmp_path), **TIMED),
        split=lambda row: row["n"] // 100,
        seeds=range(10),
    )


def test_a_reader_without_files_does_not_hold_event_time_back(tmp_path):
    table = created(tmp_path, SCHEMA)
    append(table, tmp_path, [(1_000, 1), (2_000, 2)])
    readers = Readers(started(tmp_path), 3)
    readers.drain()
    assert {reader.watermark() for reader in readers.readers} == {(2_000 - MAX_DELAY) * 1_000}
    append(table, tmp_path, [(3_000, 3)])
    readers.drain()
    readers.share_out(5)
    assert {reader.watermark() for reader in readers.readers} == {(3_000 - MAX_DELAY) * 1_000}


def test_checkpoints_of_a_table_that_was_read_do_not_grow(tmp_path):
    table = created(tmp_path, SCHEMA)
    readers = Readers(started(tmp_path), 2)
    for number in range(5):
        append(table, tmp_path, [(number, number)])
    readers.drain()
    readers.save()
    found = [(position["listed"], position["partly"], len(position["next"]), len(position["snapshots"])) for position in readers.saved[0]]
    assert found == [([], [], 1, 1)] * 2


@pytest.mark.parametrize("change", ["delete", "overwrite"])
def test_snapshots_that_change_rows_end_the_job_or_are_skipped(tmp_path, change):
    table = created(tmp_path, SCHEMA)
    append(table, tmp_path, [(1_000, 1), (1_000, 2)])
    strict, lenient = (Readers(started(tmp_path, skip_changes=skip), 1) for skip in (False, True))
    assert strict.drain() == lenient.drain() == [1, 2]
    if change == "delete":
        table.refresh().delete("n = 1")
    else:
        table.refresh().overwrite(rows_as_table([(1_000, 9)]), "n = 2")
    append(table, tmp_path, [(1_000, 3)])
    with pytest.raises(
        ef.ConnectorError,
        match=r"snapshot \d+ of the table shop.rows .* deletes or changes existing rows \((delete|overwrite)\).*skip_changes=True",
    ):
        strict.drain()
    assert [n for n in lenient.drain() if n != 9] == [1, 2, 3]


def test_a_snapshot_that_expired_before_it_was_read_ends_the_job(tmp_path):
    table = created(tmp_path, SCHEMA)
    append(table, tmp_path, [(1_000, 1)])
    behind, ahead = (Readers(started(tmp_path), 1) for _ in range(2))
    for number in (2, 3):
        append(table, tmp_path, [(1_000, number)])
    assert ahead.drain() == [1, 2, 3]
    behind.save()
    ahead.save()
    append(table, tmp_path, [(1_000, 4)])
    for snapshot in table.refresh().snapshots()[:-1]:
        table.maintenance.expire_snapshots().by_id(snapshot.snapshot_id).commit()
    ahead.source = behind.source = started(tmp_path)
    ahead.restore(2)
    assert ahead.drain() == [1, 2, 3, 4]
    behind.restore(1)
    with pytest.raises(ef.ConnectorError, match=r"a snapshot of the table shop.rows .* has expired before it was read"):
        behind.drain()


def test_a_table_that_was_rolled_back_ends_the_job(tmp_path):
    table = created(tmp_path, SCHEMA)
    append(table, tmp_path, [(1_000, 1)])
    first = table.refresh().current_snapshot().snapshot_id
    append(table, tmp_path, [(1_000, 2)])
    readers = Readers(started(tmp_path), 1)
    assert sorted(readers.drain()) == [1, 2]
    table.refresh().manage_snapshots().rollback_to_snapshot(first).commit()
    append(table, tmp_path, [(1_000, 3)])
    with pytest.raises(ef.ConnectorError, match=r"is no longer part of its history: it was rolled back or replaced"):
        readers.drain()


def test_files_that_were_removed_before_they_were_read_are_named(tmp_path):
    table = created(tmp_path, SCHEMA)
    append(table, tmp_path, [(1_000, 1)])
    readers = Readers(started(tmp_path, event_time=None), 1)
    [path] = append(table, tmp_path, [(1_000, 2)])
    path.unlink()
    with pytest.raises(ef.ConnectorError, match=rf"{path} does not exist, or no longer exists"):
        readers.drain()


def test_columns_that_are_added_renamed_and_dropped(tmp_path):
    table = created(tmp_path, SCHEMA)
    append(table, tmp_path, [(1_000, 1)])
    every, some = (Readers(started(tmp_path, columns=columns), 1) for columns in (None, ["n", "ts"]))
    every.drain()
    with table.refresh().update_schema() as update:
        update.union_by_name(SCHEMA.append(pa.field("more", pa.string())))
    table.append(rows_as_table([(1_000, 2)]).append_column("more", pa.array(["x"])))
    with pytest.raises(ef.ConnectorError, match=r"has the new column `more`; start the job again from its checkpoint"):
        every.drain()
    assert some.drain() == [1, 2]
    rows = [row for reader in [started(tmp_path).reader(0, 1)] for _ in range(2) for row in reader.poll(9).to_rows()]
    assert sorted(rows, key=lambda row: row["n"]) == [{"ts": 1_000, "n": 1, "more": None}, {"ts": 1_000, "n": 2, "more": "x"}]
    with table.refresh().update_schema() as update:
        update.rename_column("n", "number")
    table.append(pa.table({"ts": [1_000], "number": [3], "more": ["y"]}))
    with pytest.raises(ef.ConnectorError, match=r"column `n` is called `number` in snapshot"):
        some.drain()
    renamed = started(tmp_path, columns=["number", "ts"])
    reader = renamed.reader(0, 1)
    assert sorted(row["number"] for _ in range(3) for row in reader.poll(9).to_rows()) == [1, 2, 3]
    with table.refresh().update_schema() as update:
        update.delete_column("number")
    table.append(pa.table({"ts": [1_000], "more": ["z"]}))
    with pytest.raises(ef.ConnectorError, match=r"column `number` is gone in snapshot"):
        reader.poll(9)


def test_wrong_arguments_and_tables_that_can_not_be_followed(tmp_path):
    with pytest.raises(ef.FlowError, match="skip_changes is for follow=True"):
        started(tmp_path, follow=False, skip_changes=True)
    with pytest.raises(ef.FlowError, match="poll_every is 0; it must be above 0"):
        started(tmp_path, poll_every=0)
    created(tmp_path, SCHEMA)
    with pytest.raises(ef.ConnectorError, match="has no column `x`; it has: ts, n"):
        started(tmp_path, columns=["x"])
    created(tmp_path, SCHEMA, "shop.old", properties={"format-version": "1"})
    source = ef.read_iceberg("shop.old", catalog="test", options=catalog_options(tmp_path), follow=True)
    with pytest.raises(ef.ConnectorError, match="has format version 1, whose snapshots have no order; upgrade it to 2"):
        source.start()


@pytest.mark.slow
@pytest.mark.usefixtures("waiting_for_jobs")
def test_a_job_reads_what_another_writes_and_goes_on_from_its_savepoint_with_more_workers(tmp_path):
    saved = tmp_path / "saved"
    table = created(tmp_path, SCHEMA)
    before, again = list[Any](), list[Any]()

    def reading(rows: list[Any], workers: int, enough: int, **options: Any) -> tuple[Any, threading.Event]:
        flow, came = ef.Dataflow("following"), threading.Event()

        def look(row: Any) -> None:
            rows.append(row["n"])
            if len(rows) >= enough:
                came.set()

        source = ef.read_iceberg("shop.rows", catalog="test", options=catalog_options(tmp_path), follow=True, poll_every="10ms")
        flow.read(source).parallelism(workers).write(ef.to_callback(look))
        return flow.run(runtime="local", **options), came

    config = ef.JobConfig(checkpoint=ef.CheckpointConfig(str(tmp_path / "checkpoints"), interval=None))
    job, came = reading(before, 2, 20, config=config)
    for number in range(5):
        append(table, tmp_path, [(0, 10 * number + place) for place in range(4)])
    assert came.wait(patience(60))
    job.savepoint(saved)
    job.cancel()
    job.wait("60s")
    for number in range(5, 8):
        append(table, tmp_path, [(0, 10 * number + place) for place in range(4)])
    job, came = reading(again, 3, 12, from_savepoint=str(saved))
    assert came.wait(patience(60))
    job.stop()
    job.wait("60s")
    assert sorted(before) == [10 * number + place for number in range(5) for place in range(4)]
    assert sorted(again) == [10 * number + place for number in range(5, 8) for place in range(4)]
    assert table_of(tmp_path).scan().count() == 32
