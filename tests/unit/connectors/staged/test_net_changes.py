"""Net changes don't depend on the order in which the rows of a checkpoint arrive: a table that follows them has the present rows."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from evenflow.connectors.staged.net_changes import net_changes
from evenflow.engine.weights import WEIGHT

KEY = ("k", "part")


def applied(table: dict[Any, Any], rows: list[dict[str, Any]], cuts: random.Random) -> None:
    """Apply the net changes of one checkpoint, whose rows come in batches of any size."""
    batches = []
    while rows:
        size = cuts.randint(1, 4)
        batches.append(pa.RecordBatch.from_pylist(rows[:size], schema=SCHEMA))
        rows = rows[size:]
    for batch in net_changes(batches, KEY):
        for row in batch.to_pylist():
            key = tuple(row[name] for name in KEY)
            if WEIGHT in row:
                del table[key]  # a row that never was there can't be gone
            else:
                table[key] = row["n"]


SCHEMA = pa.schema({"k": pa.string(), "part": pa.int32(), "n": pa.float64(), WEIGHT: pa.int64()})


@pytest.mark.parametrize("seed", range(40))
def test_table_has_the_present_rows_whatever_the_order_within_a_checkpoint(seed):
    chance = random.Random(seed)
    present: dict[Any, Any] = {}
    table: dict[Any, Any] = {}
    for _ in range(chance.randint(1, 12)):
        rows = []
        for _ in range(chance.randint(0, 30)):
            key = chance.choice("abcde"), chance.randint(0, 1)
            old, new = present.pop(key, "none"), chance.choice(["none", None, 0.1, 0.2, float("inf")])
            for value, weight in ((old, -1), (new, 1)):
                if value != "none":
                    rows.append({"k": key[0], "part": key[1], "n": value, WEIGHT: weight})
            if new != "none":
                present[key] = new
        chance.shuffle(rows)
        applied(table, rows, chance)
        assert table == present


def test_rows_without_weights_pass_as_they_are():
    rows = pa.RecordBatch.from_pylist([{"k": "a", "n": 1}, {"k": "a", "n": 2}])
    assert [*net_changes([rows, rows], ("k",))] == [rows, rows]
    assert [*net_changes([], ("k",))] == []


def test_old_row_with_a_narrower_type_cancels_out():
    narrow = pa.record_batch({"k": ["a"], "n": pa.array([1], pa.int32()), WEIGHT: [1]})
    wide = pa.record_batch({"k": ["a", "a"], "n": pa.array([1.0, 2.5]), WEIGHT: [-1, 1]})
    assert [batch.to_pylist() for batch in net_changes([wide, narrow], ("k",))] == [[{"k": "a", "n": 2.5}]]
