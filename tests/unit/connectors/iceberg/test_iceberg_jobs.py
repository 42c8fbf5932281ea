"""Jobs that write and read Iceberg tables: through failures, savepoints and a catalog with the REST protocol."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from iceberg_rest import rest_catalog
from iceberg_tables import catalog_options, query, table_of
from patience import patience

import evenflow as ef
from evenflow.connectors.iceberg import committing
from evenflow.engine.batch import Batch

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")


PROGRAM = """
import sys
from pathlib import Path
import evenflow as ef
from iceberg_tables import catalog_options
from source_clocks import slow_until

folder, noted = Path(sys.argv[1]), []

def note(row):
    if not noted and [*folder.glob("warehouse/*/*/metadata/snap-*")]:
        noted.append(1)
        print("a snapshot", flush=True)
    return row

flow = ef.Dataflow("writing")
rows = flow.read(ef.generate(total=6_000, rate=3_000, keys=7, clock=slow_until(lambda: noted))).map(note)
rows.write(ef.write_iceberg("shop.rows", catalog="test", options=catalog_options(folder)))
config = ef.JobConfig(parallelism=2, checkpoint=ef.CheckpointConfig(str(folder / "checkpoints"), interval="50ms"))
flow.run(runtime="local", config=config).wait("120s")
"""


@pytest.mark.slow
def test_rows_of_a_killed_program_that_is_started_again_are_in_the_table_once(tmp_path):
    """Kill the whole process between commits, twice, and compare the rows that another job reads."""
    support = Path(__file__).parents[3] / "support"
    environment = {**os.environ, "PYTHONPATH": f"{support}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    for _ in range(2):
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as program:
            assert program.stdout is not None
            assert program.stdout.readline() == "a snapshot\n"
            program.kill()
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=patience(100))
    table = table_of(tmp_path)
    written = table.scan().to_arrow()
    assert query(written, "SELECT count(*), count(DISTINCT seq) FROM written") == [(6_000, 6_000)]
    assert len({name for name in table.properties if name.startswith("evenflow.run.")}) == 1
    found: list[dict[str, Any]] = []
    flow = ef.Dataflow("reading")
    flow.read(ef.read_iceberg("shop.rows", catalog="test", options=catalog_options(tmp_path), event_time="ts")).write(ef.to_list(found))
    flow.run(runtime="local").wait("60s")
    assert sorted((row["seq"], row["key"]) for row in found) == query(written, "SELECT seq, key FROM written ORDER BY ALL")


def writing(options: dict[str, str], total: int, came: threading.Event | None = None, **source: Any) -> ef.Dataflow:
    def note(row: dict[str, Any]) -> dict[str, Any]:
        if came is not None and row["seq"] > 100:
            came.set()
        return row

    flow = ef.Dataflow("writing")
    rows = flow.read(ef.generate(total=total, keys=7, **source)).map(note)
    rows.write(ef.write_iceberg("shop.rows", catalog="test", options=options))
    return flow


@pytest.mark.slow
def test_a_job_that_stops_with_a_savepoint_and_begins_from_it_writes_each_row_once(tmp_path):
    options, came = catalog_options(tmp_path), threading.Event()
    config = ef.JobConfig(checkpoint=ef.CheckpointConfig(str(tmp_path / "checkpoints"), interval="50ms"))
    job = writing(options, 20_000, came, rate=1_000).run(runtime="local", config=config)
    assert came.wait(patience(60))
    job.stop(savepoint=str(tmp_path / "saved"))
    job.wait("60s")
    before = table_of(tmp_path).scan().count()
    writing(options, 20_000, rate=50_000).run(runtime="local", from_savepoint=str(tmp_path / "saved")).wait("60s")
    rows = query(table_of(tmp_path).scan().to_arrow(), "SELECT count(*), count(DISTINCT seq) FROM written")
    assert 100 < before < 20_000
    assert rows == [(20_000, 20_000)]


def test_duckdb_reads_the_files_of_the_table_as_the_library_does(tmp_path):
    writing(catalog_options(tmp_path), 200).run(runtime="local").wait("60s")
    table = table_of(tmp_path)
    files = [task.file.file_path.removeprefix("file://") for task in table.scan().plan_files()]
    with duckdb.connect() as database:
        rows = database.execute("SELECT * FROM read_parquet(?) ORDER BY ALL", [files]).fetchall()
    assert rows == query(table.scan().to_arrow(), "SELECT * FROM written ORDER BY ALL")
    assert len(rows) == 200


def test_a_table_of_a_rest_catalog_is_written_once_though_replies_are_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(committing, "FIRST_PAUSE", 0)
    with rest_catalog(tmp_path) as catalog:
        sink = ef.write_iceberg("shop.rows", catalog="test", options=catalog.options)
        sink.start()
        for checkpoint, faults in enumerate([[], ["lost"], ["busy"], ["cut"], ["busy", "lost"], ["lost", "lost"]], start=1):
            writer = sink.writer(0, 1)
            writer.write(batch(checkpoint))
            parts = writer.prepare(checkpoint)
            catalog.faults = [*faults]
            sink.commit(checkpoint, parts)
            writer.close()
        sink.stop()
        source = ef.read_iceberg("shop.rows", catalog="test", options=catalog.options)
        source.start()
        reader = source.reader(0, 1)
        rows = []
        while not reader.finished:
            got = reader.poll(100)
            rows += [] if got is None else got.rows.column("n").to_pylist()
        source.stop()
        assert sorted(rows) == [1, 2, 3, 4, 5, 6]


def test_catalogs_that_can_not_be_used_are_named(tmp_path):
    sink = ef.write_iceberg("shop.rows", catalog="test", options={"type": "in-memory"})
    with pytest.raises(ef.ConnectorError, match=r"catalog `test` is a InMemoryCatalog; use one of the types sql and rest"):
        sink.start()
    source = ef.read_iceberg("shop.rows", catalog="test", options=catalog_options(tmp_path))
    with pytest.raises(ef.ConnectorError, match=r"the table shop.rows of catalog `test` does not exist, or was dropped"):
        source.start()
    with pytest.raises(ef.FlowError, match="expected a namespace and a name"):
        ef.write_iceberg("rows")


def batch(number: int) -> Batch:
    return Batch(pa.record_batch({"n": [number]}))
