"""NexMark's queries in SQL on Ray: while keys move and operators scale, the rows equal DuckDB's."""

from __future__ import annotations

import time

import pytest
from nexmark_database import SIDE, database_of
from patience import patience
from watching import until

import evenflow as ef
from evenflow.bench.harness.exact_rows import compare_rows, rows_of
from evenflow.bench.harness.jobs import has_ended
from evenflow.bench.nexmark.queries.oracles import ORACLES, PROGRESS, UPDATED
from evenflow.bench.nexmark.sql import TEXTS, read_by
from evenflow.bench.nexmark.unrest import Unrest

GROUPS = (
    ("q0", "q1", "q2", "q10", "q13", "q14", "q21", "q22", "q3", "q20"),
    ("q5", "q7", "q8"),
    ("q4", "q9"),
    ("q11", "q12", "q15", "q16"),
    ("q17", "q18", "q19"),
)
"""The queries of each job: those that need no exchange are a part of their source's workers."""

EVENTS = {"events": 15_000, "event_rate": 150.0, "out_of_order_group_size": 50}
RATE = 1_000
PATIENCE = patience(240)

TOTALS = TEXTS["q4"].replace("AVG(highest) AS final", "AVG(highest) AS final, SUM(highest) AS total, COUNT(*) AS auctions")
LAST = {
    **PROGRESS,
    "q4": "SELECT * FROM ({found}) QUALIFY row_number() OVER (PARTITION BY id ORDER BY auctions DESC, total DESC) = 1",
    "q12": "SELECT bidder, sum(bid_count)::BIGINT AS bid_count FROM ({found}) GROUP BY bidder",
}
"""SQL for the rows that count: of a key whose updates several workers wrote, the one with the most progress."""

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def database():
    with database_of(**EVENTS) as found:
        yield found


def stopped_until(file, seconds):
    """Return a clock that stops `seconds` after its first reading, and goes on when the file exists."""
    begun = []

    def clock():
        now = time.monotonic()
        if not begun:
            begun.append(now)
        return now if file.exists() else min(now, begun[0] + seconds)

    return clock


def found(database, name, folder):
    """Return a query for the rows that a job wrote, with the oracle's names for its columns."""
    names = ", ".join(f'"{row[0]}"' for row in database.execute(f"DESCRIBE {ORACLES[name]}").fetchall())
    return f"SELECT * FROM ({rows_of(folder / name)}) AS found({names})"


def test_every_query_is_in_a_job_and_every_updated_one_has_a_progress():
    assert sorted(name for names in GROUPS for name in names) == sorted(TEXTS)
    assert set(UPDATED) <= set(LAST)


@pytest.mark.parametrize("names", GROUPS, ids="-".join)
def test_queries_in_sql_have_duckdbs_rows_while_keys_move_and_operators_scale(tmp_path, database, names):
    flow = ef.Dataflow("sql-live")
    texts = {name: TOTALS if name == "q4" else TEXTS[name] for name in names}
    read = sorted({stream for text in texts.values() for stream in read_by(text)})
    clock = stopped_until(tmp_path / "moved", EVENTS["events"] / RATE / 2)
    streams = {stream: flow.read(ef.nexmark(stream, name=stream, rate=RATE, every="50ms", clock=clock, **EVENTS)) for stream in read}
    for name, text in texts.items():
        inputs = {stream: streams[stream] for stream in read_by(text)} | ({"side": SIDE} if name == "q13" else {})
        ef.sql(text, ttl="never", **inputs).write(ef.write_parquet(tmp_path / name, name=name))

    config = ef.JobConfig(parallelism=2, key_groups=32, checkpoint=ef.CheckpointConfig(interval="1s"))
    stages = flow.plan(config=config).stages
    keyed, scalable = [stage.name for stage in stages if stage.is_keyed], [stage.name for stage in stages if stage.can_be_scaled]
    job = flow.run(config=config)
    try:
        with Unrest(job, keyed, scalable, every=0.3):
            until(lambda: any(report.keys_moved for report in (*job.migrations(), *job.scalings())), "keys have moved", PATIENCE)
            (tmp_path / "moved").touch()
            until(lambda: has_ended(job), "all events have come", PATIENCE)
        job.wait("240s")
    finally:
        job.cancel()

    for name in names:
        rows, missing, wrong = compare_rows(
            database, ORACLES[name], LAST.get(name, "{found}").format(found=found(database, name, tmp_path))
        )
        assert (missing, wrong) == (0, 0), name
        assert rows > 0, name
