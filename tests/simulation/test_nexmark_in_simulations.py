"""NexMark queries in simulated jobs whose keys move and whose operators scale: the rows are those of DuckDB, whatever is lost."""

from __future__ import annotations

from typing import Any

import duckdb
import nexmark_events
import pytest
from seeds import blocks, proportion

import evenflow as ef
from evenflow.bench.nexmark import QUERIES, Events
from evenflow.bench.nexmark.queries.events import side_table
from evenflow.bench.nexmark.queries.oracles import ORACLES
from evenflow.scheduler.protocol.effects import JobState
from evenflow.testing import simulate
from evenflow.testing.actions.crashing import with_crashes
from evenflow.testing.actions.scaling import with_scaling
from evenflow.testing.comparison import row_differences

pytestmark = pytest.mark.timeout(600)  # a block of seeds takes seconds of a core, and a busy machine gives it only a part of one

SEEDS, BLOCK, QUICK = 10, 3, 1
"""Seeds for each query and kind of accident, in all, per test, and per test of a quick run."""

TABLES = nexmark_events.tables(600, 20, group=40)
ACCIDENTS = {"scaling": with_scaling(), "crashes while it scales": with_crashes(with_scaling())}

NEWEST = {
    "q9": (("id",), lambda row: (row["price"], -row["bid_dateTime"].timestamp())),
    "q18": (("auction", "bidder"), lambda row: row["dateTime"]),
    "q19": (("auction", "rank_number"), lambda row: (row["price"], -row["dateTime"].timestamp())),
    "totals": (("category",), lambda row: (row["auctions"], row["total"])),
}
"""Columns that grow with each update, by query: updates of a key that has moved arrive by two channels, so their order is
unknown.
"""

CHOSEN = ("q4", "q5", "q7", "q8", "q9", "q11", "q18", "q19", "q20")


def make_flow(name: str) -> ef.Dataflow:
    flow = ef.Dataflow(name)

    def stream(table: str) -> Any:
        return lambda: flow.read(ef.from_items(TABLES[table].to_pylist(), event_time="dateTime", max_delay="3s", name=table))

    results = QUERIES[name](Events(stream("person"), stream("auction"), stream("bid"), side_table()))
    if name == "q4":  # an average may also fall: what it is made from only grows
        totals = next(node for node in flow.graph if node.name == "totals")
        ef.Stream(flow, totals).write(ef.to_list([], name="all-totals"))
    results.write(ef.to_list([], name="results"))
    return flow


def expected(name: str) -> list[dict[str, Any]]:
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        for table, rows in TABLES.items():
            database.register(table, rows)
        return database.sql(ORACLES[name]).to_arrow_table().to_pylist()


def newest(rows: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    keys, progress = NEWEST[name]
    found = {tuple(row[key] for key in keys): row for row in sorted(rows, key=progress)}
    return list(found.values())


def counting_rows(name: str, rows: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the last update of each key, or all rows of a query without updates."""
    if name == "q4":
        return [{"id": row["category"], "final": row["total"] // row["auctions"]} for row in newest(rows["all-totals"], "totals")]
    return newest(rows["results"], name) if name in NEWEST else rows["results"]


@pytest.mark.slow
@pytest.mark.parametrize("seeds", blocks(SEEDS, BLOCK, proportion(SEEDS * len(ACCIDENTS) * len(CHOSEN)), QUICK))
@pytest.mark.parametrize("accidents", ACCIDENTS)
@pytest.mark.parametrize("name", CHOSEN)
def test_rows_are_those_of_duckdb_while_operators_scale_and_keys_move(name, accidents, seeds):
    wanted = expected(name)
    assert wanted
    moved = 0
    for seed in seeds:
        save = accidents != "scaling"
        result = simulate(make_flow(name), seed, parallelism=seed % 3 + 1, save_state=save, actions=ACCIDENTS[accidents])
        assert result.state is JobState.FINISHED
        assert not any(result.late_records.values())
        moved += result.moved
        assert row_differences(counting_rows(name, result.rows), wanted) == [], f"seed {seed}"
    assert moved > len(seeds) / 2
