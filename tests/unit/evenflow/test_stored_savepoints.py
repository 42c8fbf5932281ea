"""Savepoints that released formats hold, in `savepoints/`: a job continues from each, and gives the rows of one that was never stopped.

To add one, when a format changes: `PYTHONPATH=tests/support python tests/unit/evenflow/test_stored_savepoints.py NAME`.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from patience import until

import evenflow as ef

SAVEPOINTS = Path(__file__).parent / "savepoints"
STORED = sorted(folder.name for folder in SAVEPOINTS.iterdir() if folder.is_dir())
ROWS, SAVED = 400, 200
"""The number of rows, and of those that come before a savepoint."""

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")
Row = dict[str, Any]


def remember(state: Any, row: Row) -> tuple[Any, Row]:
    """Keep a state with values of many types."""
    count, seen, spent, since = state or (0, frozenset(), Decimal("0.00"), datetime(2026, 1, 1, tzinfo=UTC))
    state = (count + 1, seen | {row["n"] % 3}, spent + row["price"], max(since, datetime.fromtimestamp(row["n"], UTC)))
    return state, {"n": row["n"], "text": f"{state[0]} {sorted(state[1])} {state[2]} {state[3]:%s}"}


class Recent(ef.KeyedFunction):
    """States of every kind, and a timer for each key."""

    count = ef.value_state(default=0)
    numbers = ef.list_state()
    by_rest = ef.map_state()

    def on_row(self, key, row, context):
        self.count += 1
        self.numbers.append(row["n"])
        self.by_rest[row["n"] % 2] = row["n"]
        context.timer(datetime(1970, 1, 1, 2, 46, 40))

    def on_timer(self, key, at, context):
        yield {"count": self.count, "last": list(self.numbers)[-3:], "rests": sorted(self.by_rest.items())}


def build(until_row: threading.Event, rows: int) -> tuple[ef.Dataflow, dict[str, list[Row]]]:
    """Build a flow with every kind of state, whose source waits after `SAVED` rows until the event is set."""

    def numbers(_partition: int, position: Any) -> Any:
        for n in range(position or 0, rows):
            while n >= SAVED and not until_row.is_set():
                yield None
            price = Decimal(n) / 4
            yield {"n": n, "small": n % 7, "name": f"name-{n % 5}", "price": price.quantize(Decimal("0.01")), "ts": n}, n + 1

    flow, found = ef.Dataflow("stored"), {}

    def rows_of(stream: Any, name: str) -> None:
        found[name] = []
        stream.named(name).write(ef.to_list(found[name], name=f"to_{name}"))

    read = flow.read(ef.from_generator(numbers, event_time="ts", unit="s", poll_every="10ms")).parallelism(1)
    small, named, both = read.key_by("small"), read.key_by("name"), read.key_by("name", "small")
    functions = {
        "rows": ef.count(), "total": ef.sum("price"), "mean": ef.mean("n"), "least": ef.min("name"), "most": ef.max("price"),
        "first": ef.first("n"), "last": ef.last("n"), "different": ef.count_distinct("name"), "about": ef.approx_distinct("n"),
        "middle": ef.median("n"), "spread": ef.stddev("n"), "all": ef.collect("small"), "where": ef.max_by("name", "n"),
    }  # fmt: skip
    rows_of(small.aggregate(emit="final", **functions), "totals")
    rows_of(both.aggregate(emit="final", n=ef.count()), "pairs_of_keys")
    rows_of(named.window(ef.tumbling("1d")).aggregate(n=ef.count(), total=ef.sum("price")), "windows")
    rows_of(named.window(ef.session("1h")).aggregate(n=ef.count()), "sessions")
    rows_of(named.window(ef.rows(60)).aggregate(n=ef.count()), "counted")
    rows_of(small.stateful_map(remember), "remembered")
    rows_of(named.process(Recent()), "recent")
    rows_of(small.join(named.key_by("small"), ef.between("0s", "7s")).select("n", "n_right"), "joined")
    rows_of(named.deduplicate("name"), "deduplicated")
    return flow, found


def in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=repr)


@pytest.mark.parametrize("stored", STORED)
def test_a_job_continues_from_a_stored_savepoint_with_the_rows_of_one_that_was_not_stopped(stored):
    go = threading.Event()
    go.set()
    whole, expected = build(go, ROWS)
    whole.run(runtime="local", parallelism=2).wait("60s")
    begun, before = build(go, SAVED)
    begun.run(runtime="local", parallelism=2).wait("60s")
    resumed, found = build(go, ROWS)
    resumed.run(runtime="local", parallelism=3, from_savepoint=SAVEPOINTS / stored).wait("60s")
    for name in ("remembered", "joined", "deduplicated"):  # of these, rows were emitted before the savepoint
        expected[name] = [row for row in expected[name] if row not in before[name]]
    assert {name: in_order(rows) for name, rows in found.items()} == {name: in_order(rows) for name, rows in expected.items()}
    assert found["remembered"]


def store(name: str) -> None:
    """Stop a job after `SAVED` rows, and store its state as a savepoint of this name."""
    flow, _ = build(threading.Event(), ROWS)
    with tempfile.TemporaryDirectory() as folder:
        config = ef.JobConfig(parallelism=2, key_groups=16, checkpoint=ef.CheckpointConfig(folder, interval=None))
        job = flow.run(runtime="local", config=config)
        until(lambda: sum(each.rows_in for each in job.metrics() if each.operator == "remembered") == SAVED)
        job.savepoint(SAVEPOINTS / name)
        job.cancel()
        job.wait("30s")


if __name__ == "__main__":
    store(sys.argv[1])
