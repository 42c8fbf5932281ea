"""ROW_NUMBER() ... = 1 over rows of equal event times keeps one of them, whatever the batches, as Flink's deduplication does."""

from __future__ import annotations

import random

import pytest

import evenflow as ef
from evenflow.engine.aggregates.lists.first_rows import Order
from evenflow.engine.aggregates.lists.top import Top
from evenflow.testing import simulate
from evenflow.testing.actions.crashing import with_crashes
from evenflow.testing.actions.moving import with_moves

SOURCES = 2


def rows_with_ties(seed: int):
    """Return rows in the order of their arrival. All rows of a key are read by one of the sources, so their order is defined."""
    choose = random.Random(seed)
    keys = [2 * choose.randrange(4) + place % SOURCES for place in range(60)]
    return [{"k": key, "n": choose.randrange(1_000), "ts": choose.randrange(4), "l": [key]} for key in keys]


def kept(rows, direction: str):
    """Return the row of each key that Flink keeps: of the newest ones the last, of the oldest ones the first."""
    found = {}
    for row in rows:
        best = found.setdefault(row["k"], row)
        if row["ts"] >= best["ts"] if direction == "DESC" else row["ts"] < best["ts"]:
            found[row["k"]] = row
    return {key: row["n"] for key, row in found.items()}


def read(rows):
    return ef.Dataflow("ranks").read(ef.from_items(rows, event_time="ts", unit="s", max_delay="10s"))


def by_rank(stream, order: str, columns: str = "k, n", bound: str = "= 1"):
    inner = f"SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY {order}) AS place FROM t"
    return ef.sql(f"SELECT {columns} FROM ({inner}) WHERE place {bound}", t=stream)


@pytest.mark.few(2)
@pytest.mark.parametrize("direction", ["DESC", "ASC"])
@pytest.mark.parametrize("seed", range(15))
def test_last_or_first_row_of_equal_event_times_is_kept(seed, direction):
    stream, rows = read(rows_with_ties(seed)), []
    by_rank(stream, f"ts {direction}").write(ef.to_list(rows))
    found = simulate(stream.flow, seed, parallelism=SOURCES).rows["to_list"]
    assert {row["k"]: row["n"] for row in found} == kept(rows_with_ties(seed), direction)


@pytest.mark.few(2)
@pytest.mark.parametrize("direction", ["DESC", "ASC"])
@pytest.mark.parametrize("seed", range(15))
def test_the_same_row_is_kept_while_keys_move_and_workers_crash(seed, direction):
    falls = direction == "DESC"
    best = Top(Order((("ts", falls),), 1, of_equal="last" if falls else "first"), ("n",))
    stream = read(rows_with_ties(seed))
    stream.key_by("k").aggregate(best=best, seen=ef.count()).explode("best").write(ef.to_list([]))
    actions = with_crashes(with_moves(5, ("sudden", "fluid", "lazy")))
    found = simulate(stream.flow, seed, parallelism=SOURCES, actions=actions, save_state=True).rows["to_list"]
    in_order = sorted(found, key=lambda row: row["seen"])  # rows before and after a move arrive on two channels
    assert {row["k"]: row["n"] for row in in_order} == kept(rows_with_ties(seed), direction)


def test_rows_with_lists_can_be_deduplicated_by_event_time(waiting_for_jobs):
    rows = []
    stream = read([{"k": 1, "n": 5, "ts": 3, "l": [1]}, {"k": 1, "n": 4, "ts": 3, "l": None}])
    by_rank(stream, "ts DESC", "l, n").write(ef.to_list(rows))
    stream.flow.run(runtime="local").wait()
    assert rows[-1] == {"l": None, "n": 4}


@pytest.mark.parametrize(("order", "bound"), [("n % 2", "= 1"), ("ts", "<= 2"), ("ts DESC, g", "= 1"), ("g", "= 1")])
def test_other_orders_rank_equal_rows_by_their_columns(order, bound, waiting_for_jobs):
    arrived = [{"k": 1, "n": n, "g": 0, "ts": 3} for n in (8, 2, 6)]
    for rows in (arrived, arrived[::-1]):
        stream, out = read(rows), []
        by_rank(stream, order, bound=bound).write(ef.to_list(out))
        stream.flow.run(runtime="local").wait()
        assert [row["n"] for row in out][-int(bound[-1]) :] == [2, 6][: int(bound[-1])]
