"""NexMark's queries in Flink's SQL: exactly the rows that DuckDB has for the benchmark's oracles."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from nexmark_database import SIDE, database_of

import evenflow as ef
from evenflow.bench.nexmark.queries.oracles import ORACLES, UPDATED
from evenflow.bench.nexmark.sql import TEXTS, read_by

SIZE = {"events": 6_000, "event_rate": 60.0}


@pytest.fixture(scope="module")
def database(disorder):
    with database_of(out_of_order_group_size=disorder, **SIZE) as found:
        yield found


def run(name: str, disorder: int, parallelism: int) -> pa.Table:
    flow, rows = ef.Dataflow(name), list[Any]()
    streams = {
        s: flow.read(ef.nexmark(s, out_of_order_group_size=disorder, rows_per_batch=100, name=s, **SIZE)) for s in read_by(TEXTS[name])
    }
    tables = {"side": SIDE} if name == "q13" else {}
    ef.sql(TEXTS[name], ttl="never", **streams, **tables).write(ef.to_list(rows))
    flow.run(runtime="local", parallelism=parallelism).wait("120s")
    return pa.Table.from_pylist(rows)


@pytest.mark.few(6)
@pytest.mark.parametrize(("disorder", "parallelism"), [(1, 1), (37, 2)], scope="module")
@pytest.mark.parametrize("name", TEXTS)
def test_rows_are_those_of_the_oracle(database, waiting_for_jobs, name, disorder, parallelism):
    found = run(name, disorder, parallelism)
    shown = ", ".join(f'"{column}"' for column in found.column_names)
    database.register("found", found.append_column("_place", pa.array(range(len(found)))))
    rows = "found"
    if name in UPDATED:
        key = ", ".join(f'"{column}"' for column in UPDATED[name])
        rows = f"(SELECT * FROM found QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY _place DESC) = 1)"
    ours = f"SELECT {shown} FROM {rows}"
    if name == "q12":  # windows of the time of arrival are the machine's
        ours = f"SELECT bidder, sum(bid_count)::BIGINT FROM ({ours}) GROUP BY bidder"
    assert database.execute(f"({ORACLES[name]}) EXCEPT ALL ({ours})").fetchall() == []
    assert database.execute(f"({ours}) EXCEPT ALL ({ORACLES[name]})").fetchall() == []
    assert len(found)
