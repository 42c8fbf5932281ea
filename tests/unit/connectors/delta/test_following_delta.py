"""Versions of a Delta Lake table as they appear: each row once, in order, with true watermarks, despite losses and reassignments."""

from __future__ import annotations

import json
import random
import threading
import uuid
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.transaction import AddAction
from patience import patience
from readers_at_random import Readers

import evenflow as ef
from evenflow.connectors.delta.log import DeltaLog
from evenflow.connectors.followed import versions
from evenflow.engine.protocol.elements import MIN_TIME
from evenflow.testing import check_source

SCHEMA = pa.schema({"ts": pa.int64(), "n": pa.int64()})

MAX_DELAY = 5
"""Milliseconds by which a row may be older than one before it in its file, or in an earlier version."""

TIMED: dict[str, Any] = {"follow": True, "poll_every": "1us", "event_time": "ts", "max_delay": MAX_DELAY / 1000}


Row = tuple[int, int]


def table_of(rows: list[Row]) -> pa.Table:
    return pa.table([[ts for ts, _ in rows], [n for _, n in rows]], SCHEMA)


def append(folder: Path, *files: list[Row], statistics: bool = True) -> list[Path]:
    """Append a version with these files."""
    if not DeltaTable.is_deltatable(str(folder)):
        deltalake.write_deltalake(str(folder), table_of([]))
    paths, actions = list[Path](), list[Any]()
    for rows in files:
        path = folder / f"part-{uuid.uuid4()}.parquet"
        pq.write_table(table_of(rows), path, row_group_size=3, write_statistics=statistics)
        paths.append(path)
        actions.append(AddAction(path.name, path.stat().st_size, {}, 0, True, json.dumps({"numRecords": len(rows)})))
    table = DeltaTable(str(folder))
    table.create_write_transaction(actions, "append", table.schema(), [])
    return paths


def started(folder: Path, **options: Any) -> Any:
    source = ef.read_delta(folder, **{**TIMED, **options})
    source.start()
    return source


def grow(folder: Path, random: random.Random, files: list[list[int]], newest: int, *, followed: bool) -> int:
    """Append a version: rows, none, or (if `followed`, since they would be read in any order) the same rows in other files."""
    if random.random() < 0.15 and files and followed:
        DeltaTable(str(folder)).optimize.compact()
        return newest
    new, before = list[list[Row]](), newest
    for _ in range(random.randint(0, 3)):
        rows, time = list[Row](), before
        for place in range(random.randint(0, 7)):
            time += random.randint(0, 3)
            rows.append((max(time - random.randint(0, MAX_DELAY), before - MAX_DELAY), 100 * len(files) + place))
            newest = max(newest, rows[-1][0])
        files.append([n for _, n in rows])
        new.append(rows)
    append(folder, *new, statistics=random.random() < 0.7)
    return newest


@pytest.mark.slow
def test_every_row_comes_once_and_in_order_whatever_is_added_and_lost_when(tmp_path_factory):
    for seed in range(30):
        folder, dice = tmp_path_factory.mktemp("table"), random.Random(seed)
        files, newest = list[list[int]](), 1_000
        append(folder)
        for _ in range(dice.randint(0, 3)):
            newest = grow(folder, dice, files, newest, followed=False)
        readers = Readers(started(folder), dice.randint(1, 3))
        for _ in range(40):
            if dice.random() < 0.25:
                newest = grow(folder, dice, files, newest, followed=True)
            else:
                readers.disturb(dice, polls=0.66, saves=0.14, shares=0.1, most_rows=6)
        came = readers.drain()
        assert sorted(came) == [n for file in files for n in file], f"seed {seed}"
        for number, rows in enumerate(files):
            assert [n for n in came if n // 100 == number] == rows, f"seed {seed}"


@pytest.mark.slow
def test_source_holds_its_contract(tmp_path):
    for number in range(6):
        append(tmp_path, [(1_000 + number, 100 * number + place) for place in range(4)])
    check_source(ef.read_delta(tmp_path, version=3, **TIMED), split=lambda row: row["n"] // 100)


def test_a_reader_without_files_does_not_hold_event_time_back(tmp_path):
    append(tmp_path, [(1_000, 1), (2_000, 2)])
    readers = Readers(started(tmp_path), 3)
    readers.drain()
    assert {reader.watermark() for reader in readers.readers} == {(2_000 - MAX_DELAY) * 1_000}
    append(tmp_path, [(3_000, 3)])
    readers.drain()
    readers.share_out(5)
    assert {reader.watermark() for reader in readers.readers} == {(3_000 - MAX_DELAY) * 1_000}


def test_files_that_are_many_are_not_looked_into(tmp_path, monkeypatch):
    monkeypatch.setattr(versions, "MOST_LOOKED_AT", 2)
    append(tmp_path, *([(1_000 + n, n)] for n in range(3)))
    readers = Readers(started(tmp_path), 1)
    readers.poll(0, 1)
    assert readers.readers[0].watermark() == MIN_TIME
    assert sorted(readers.drain()) == [0, 1, 2]


def test_checkpoints_of_a_table_that_was_read_do_not_grow(tmp_path):
    append(tmp_path)
    readers = Readers(started(tmp_path), 2)
    for number in range(20):
        append(tmp_path, [(number, number)])
    readers.drain()
    readers.save()
    assert [(position["listed"], position["partly"], len(position["next"])) for position in readers.saved[0]] == [([], [], 1)] * 2


@pytest.mark.parametrize("change", ["delete", "overwrite"])
def test_versions_that_change_rows_end_the_job_or_are_skipped(tmp_path, change):
    append(tmp_path, [(1_000, 1), (1_000, 2)])
    strict, lenient = (Readers(started(tmp_path, skip_changes=skip), 1) for skip in (False, True))
    assert strict.drain() == lenient.drain() == [1, 2]
    if change == "delete":
        DeltaTable(str(tmp_path)).delete("n = 1")
    else:
        deltalake.write_deltalake(str(tmp_path), table_of([(1_000, 9)]), mode="overwrite")
    append(tmp_path, [(1_000, 3)])
    with pytest.raises(
        ef.ConnectorError, match=r"version 2 of .* deletes or changes existing rows .*\((DELETE|WRITE)\).*skip_changes=True"
    ):
        strict.drain()
    assert lenient.drain() == [1, 2, 3]


def test_files_that_were_vacuumed_before_they_were_read(tmp_path):
    append(tmp_path, [(1_000, 1)])
    readers = Readers(started(tmp_path), 1)
    [path] = append(tmp_path, [(1_000, 2)])
    path.unlink()
    with pytest.raises(ef.ConnectorError, match=rf"{path} was removed before it was read to its end, presumably vacuumed"):
        readers.drain()


def test_a_version_that_is_gone_from_the_log(tmp_path):
    append(tmp_path, [(1_000, 1)])
    readers = Readers(started(tmp_path), 1)
    for number in (2, 3):
        append(tmp_path, [(1_000, number)])
    (tmp_path / "_delta_log" / f"{2:020}.json").unlink()
    with pytest.raises(ef.ConnectorError, match=r"version 2 of .* is missing from the table's log, which continues to version 3"):
        readers.drain()
    (tmp_path / "_delta_log" / f"{3:020}.json").write_text("{")
    with pytest.raises(ef.ConnectorError, match=r"0003\.json can't be read as a version of a Delta table"):
        DeltaLog(str(tmp_path), "read_delta").version(3)


def test_columns_that_are_added_and_change(tmp_path):
    append(tmp_path, [(1_000, 1)])
    every, some = Readers(started(tmp_path), 1), Readers(started(tmp_path, columns=["n", "ts"]), 1)
    every.drain()
    wider = table_of([(1_000, 2)]).append_column("more", pa.array(["x"]))
    deltalake.write_deltalake(str(tmp_path), wider, mode="append", schema_mode="merge")
    with pytest.raises(ef.ConnectorError, match=r"version 2 of .* adds the column `more`; start the job again from its checkpoint"):
        every.drain()
    assert some.drain() == [1, 2]
    source = started(tmp_path)
    reader = source.reader(0, 1)
    assert reader.poll(9).to_rows() + reader.poll(9).to_rows() in (
        [{"ts": 1_000, "n": 1, "more": None}, {"ts": 1_000, "n": 2, "more": "x"}],
        [{"ts": 1_000, "n": 2, "more": "x"}, {"ts": 1_000, "n": 1, "more": None}],
    )
    again = source.reader(0, 1)
    again.seek(every.saved[0][0])
    deltalake.write_deltalake(str(tmp_path), pa.table({"ts": [1_000], "n": ["text"]}), mode="overwrite", schema_mode="overwrite")
    with pytest.raises(ef.ConnectorError, match=r"column `n` was int64, and is string in version 3 of"):
        some.drain()


def test_wrong_settings_are_refused(tmp_path):
    with pytest.raises(ef.FlowError, match="skip_changes is for follow=True"):
        ef.read_delta(tmp_path, skip_changes=True)
    with pytest.raises(ef.FlowError, match="poll_every is 0; it must be above 0"):
        ef.read_delta(tmp_path, follow=True, poll_every=0)
    append(tmp_path, [(1_000, 1)])
    with pytest.raises(ef.ConnectorError, match="has no column `x`; it has: ts, n"):
        started(tmp_path, columns=["x"])


@pytest.mark.usefixtures("waiting_for_jobs")
def test_a_job_reads_what_another_writes_and_goes_on_from_its_savepoint_with_more_workers(tmp_path):
    table, saved = tmp_path / "table", tmp_path / "saved"
    append(table)
    before, again = list[Any](), list[Any]()

    def reading(rows: list[Any], workers: int, enough: int, **options: Any) -> tuple[Any, threading.Event]:
        flow, came = ef.Dataflow("following"), threading.Event()

        def look(row: Any) -> None:
            if len(rows) >= enough:
                came.set()

        stream = flow.read(ef.read_delta(table, follow=True, poll_every="1ms")).parallelism(workers)
        stream.write(ef.to_callback(lambda row: (rows.append(row["n"]), look(row))))
        return flow.run(runtime="local", **options), came

    config = ef.JobConfig(checkpoint=ef.CheckpointConfig(str(tmp_path / "checkpoints"), interval=None))
    job, came = reading(before, 2, 40, config=config)
    for number in range(10):
        append(table, [(0, 10 * number + place) for place in range(4)])
    assert came.wait(patience(60))
    job.savepoint(saved)
    job.cancel()
    job.wait("60s")
    for number in range(10, 15):
        append(table, [(0, 10 * number + place) for place in range(4)])
    job, came = reading(again, 3, 20, from_savepoint=str(saved))
    assert came.wait(patience(60))
    job.stop()
    job.wait("60s")
    assert sorted(before) == [10 * number + place for number in range(10) for place in range(4)]
    assert sorted(again) == [10 * number + place for number in range(10, 15) for place in range(4)]
