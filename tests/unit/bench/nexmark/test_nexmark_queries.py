"""Every NexMark query emits all rows of DuckDB, over events in order, out of order, and with ties."""

from __future__ import annotations

import nexmark_events
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenflow as ef
from evenflow.bench.nexmark import QUERIES, Events
from evenflow.bench.nexmark import check as checking
from evenflow.bench.nexmark.check import check_query, connect
from evenflow.bench.nexmark.queries.events import side_table
from evenflow.bench.nexmark.queries.oracles import ORACLES, PROGRESS, UPDATED
from evenflow.bench.nexmark.queries.plain import q1
from evenflow.cli import main
from evenflow.connectors.nexmark.source import STREAMS

TOTAL, RATE = 20_000, 400
SMALL_BATCHES = ef.JobConfig(network=ef.NetworkConfig(source_rows=1_500), checkpoint=ef.CheckpointConfig(interval=None))
"""So that results are updated, and rows of different streams come in turn."""

KINDS = ("in-order", "out-of-order", "ties", "slow")


pytestmark = pytest.mark.usefixtures("waiting_for_jobs")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    ordered, disordered, slow = (nexmark_events.tables(*of) for of in ((TOTAL, RATE), (TOTAL, RATE, 500), (TOTAL // 10, 1)))
    tables = (ordered, disordered, nexmark_events.with_ties(ordered, 500), slow)
    return {kind: nexmark_events.write(of_kind, tmp_path_factory.mktemp(kind)) for kind, of_kind in zip(KINDS, tables, strict=True)}


@pytest.mark.few(3)
@pytest.mark.first
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", QUERIES)
def test_all_rows_are_those_of_duckdb(name, kind, folders):
    checked = check_query(name, folders[kind], max_delay="2s", config=SMALL_BATCHES)
    assert checked.equal, checked
    assert checked.rows_out > 0 or kind == "slow"


@pytest.mark.parametrize("name", ["q3", "q5", "q8", "q11", "q20"])
def test_all_rows_are_those_of_duckdb_with_several_workers(name, folders):
    """The order of these results doesn't matter, so every operator can have three workers."""
    config = ef.JobConfig(parallelism=3, network=ef.NetworkConfig(source_rows=500), checkpoint=ef.CheckpointConfig(interval=None))
    assert check_query(name, folders["out-of-order"], max_delay="60s", config=config).equal


TRAPS = {
    "bids come before their auction": "FROM bid b JOIN auction a ON a.id = b.auction WHERE b.seq < a.seq",
    "bids come after their auction has ended": 'FROM bid b JOIN auction a ON a.id = b.auction WHERE b."dateTime" > a.expires',
    "auctions come before their seller": "FROM auction a JOIN person p ON a.seller = p.id WHERE a.seq < p.seq",
    "auctions have no bid": "FROM auction ANTI JOIN bid ON id = auction",
    "auctions tie for the most bids": f"FROM ({ORACLES['q5']}) GROUP BY window_start HAVING count(*) > 1",
    "windows begin before the first event": f'FROM ({ORACLES["q5"]}) WHERE window_start < (SELECT min("dateTime") FROM bid)',
    "bids have no channel number": "FROM bid WHERE url NOT LIKE '%channel_id=%' AND channel LIKE 'channel-%'",
    "averages are cut off": f"FROM ({ORACLES['q17']}) WHERE sum_price % total_bids != 0",
    "bids tie for the highest price of a window": f"FROM ({ORACLES['q7']}) GROUP BY window_start HAVING count(*) > 1",
    "a bidder bids twice at a time": 'FROM bid GROUP BY auction, bidder, "dateTime" HAVING count(*) > 1',
    "bids of one price and time compete": 'FROM bid GROUP BY auction, price, "dateTime" HAVING count(*) > 1',
    "a pause is as long as the gap": """
        FROM (SELECT "dateTime" - lag("dateTime") OVER (PARTITION BY bidder ORDER BY "dateTime") AS pause FROM bid)
        WHERE pause = INTERVAL 10 SECOND
    """,
}


@pytest.mark.parametrize("trap", TRAPS)
def test_events_have_the_traps_of_the_queries(trap, folders):
    found = []
    for kind in KINDS:
        with connect(folders[kind]) as database:
            found += database.sql(f"SELECT 1 {TRAPS[trap]}").fetchall()
    assert found


def spoilt(bids: pa.RecordBatch) -> pa.RecordBatch:
    """Return the bids without the first one, and with the second one twice."""
    return pa.concat_batches([bids.slice(1), bids.slice(1, 1)])


def test_a_missing_row_and_one_too_many_are_found(folders, monkeypatch):
    monkeypatch.setitem(checking.QUERIES, "q0", lambda events: QUERIES["q1"](events).map_batches(spoilt))
    monkeypatch.setitem(checking.ORACLES, "q0", ORACLES["q1"])
    checked = check_query("q0", folders["in-order"])
    assert (checked.missing, checked.wrong, checked.equal) == (1, 1, False)


def test_command_checks_queries_and_fails_if_a_row_is_wrong(monkeypatch, capsys):
    command = ["bench", "check", "--queries", "q1,q5", "--events", "2000", "--disorder", "50", "--seed", "11"]
    assert main(command) == 0
    monkeypatch.setitem(checking.QUERIES, "q1", lambda events: q1(events).map_batches(spoilt))
    assert main(command) == 1
    said = capsys.readouterr()
    assert "q5: equal" in said.err
    assert "q1: NOT EQUAL" in said.err
    assert "seed 11: --seed 11" in said.err


def test_command_moves_and_kills_on_ray_only(capsys):
    assert main(["bench", "check", "--queries", "q1", "--events", "2000", "--kills"]) == 1
    assert "add --runtime ray" in capsys.readouterr().err


@pytest.mark.parametrize("name", PROGRESS)
def test_the_last_row_of_a_key_is_found_in_any_order(name, folders, tmp_path):
    """Several workers may have written the rows, so their order says nothing."""
    flow = ef.Dataflow(name)

    def stream(table):
        return lambda: flow.read(ef.read_parquet(folders["ties"] / table, event_time="dateTime", max_delay="2s", name=table))

    QUERIES[name](Events(*map(stream, STREAMS), side_table())).write(ef.write_parquet(tmp_path / "out"))
    checking.add_progress(flow, name, tmp_path)
    flow.run(runtime="local", config=SMALL_BATCHES).wait()
    for folder in tmp_path.iterdir():
        rows = pa.concat_tables([pq.read_table(file) for file in folder.glob("*.parquet")])
        for file in folder.glob("*.parquet"):
            file.unlink()
        order = np.random.default_rng(7).permutation(len(rows))
        pq.write_table(rows.take(order), folder / "rows.parquet")
    checked = checking.compared(flow, name, folders["ties"], tmp_path, 1.0, by_progress=True)
    assert checked.equal, checked
    assert checked.rows_out > 0


def test_every_query_has_an_oracle_and_a_docstring():
    assert list(ORACLES) == list(QUERIES) == [f"q{number}" for number in range(23)]
    assert set(UPDATED) < set(QUERIES)
    assert all(query.__doc__ for query in QUERIES.values())


def test_a_stream_given_as_a_function_is_added_once_and_only_if_it_is_read():
    flow, begun = ef.Dataflow("lazy"), []

    def people():
        begun.append("person")
        return flow.read(ef.from_items([{"id": 1, "name": "Ann"}]))

    events = Events(people, people, flow.read(ef.from_items([{"id": 1}])), pa.table({"key": [0]}))
    assert begun == []
    assert events.person is events.person
    assert isinstance(events.bid, ef.Stream)
    assert begun == ["person"]
