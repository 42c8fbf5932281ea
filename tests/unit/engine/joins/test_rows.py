"""Rows in memory that are sorted, selected and merged without a copy: the same as with one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from evenflow.engine.joins import rows as joins_rows
from evenflow.engine.joins.rows import MemoryRows


def table(rows, first=0):
    return pa.record_batch(
        {"n": range(first, first + rows), "text": [None if n % 7 == 3 else f"row {n}" for n in range(first, first + rows)]}
    )


@pytest.mark.parametrize("large", [20, 10_000])
@pytest.mark.parametrize("seed", range(40))
def test_any_sequence_of_steps_gives_what_copying_gives(seed, large, monkeypatch):
    monkeypatch.setattr(joins_rows, "LARGE", large)
    random = np.random.default_rng(seed)
    rows, expected = MemoryRows(table(50)), table(50)
    for step in range(12):
        size = len(rows)
        match random.integers(4):
            case 0:
                places = random.integers(0, size, int(random.integers(1, 2 * size)))
                rows, expected = rows.take(places), expected.take(pa.array(places))
            case 1:
                mask = random.random(size) < random.choice([0.3, 0.8])
                mask[0] = True
                rows, expected = rows.filter(mask), expected.filter(pa.array(mask))
            case 2:
                start = int(random.integers(size))
                length = int(random.integers(1, size - start + 1))
                rows, expected = rows.slice(start, length), expected.slice(start, length)
            case 3:
                more = MemoryRows(table(30, 100 * step)).take(random.permutation(30))
                expected = pa.concat_batches([expected, more.read()])
                rows = rows.with_others([more])
        assert (len(rows), rows.schema) == (expected.num_rows, expected.schema)
        places = random.integers(0, len(rows), 5)
        assert rows.reached(places).rows("text").to_pydict() == expected.take(pa.array(places)).select(["text"]).to_pydict()
        assert rows.reached(places).column("n").to_pylist() == expected["n"].take(pa.array(places)).to_pylist()
    assert rows.read().equals(expected)
    assert rows.read() is rows.read()


def test_sorting_copies_no_values_and_few_rows_keep_no_large_table():
    given = table(1000)
    rows = MemoryRows(given).take(np.arange(1000)[::-1])
    assert rows.reached(np.array([0])).tables[0] is given
    assert rows.filter(np.arange(1000) < 600).reached(np.array([0])).tables[0] is given
    few = rows.filter(np.arange(1000) < 400)
    assert few.nbytes < given.get_total_buffer_size() / 2
    assert few.read()["n"].to_pylist() == list(range(999, 599, -1))


def test_a_column_of_nulls_takes_the_type_of_the_others():
    unknown = MemoryRows(pa.record_batch({"n": [1, 2], "text": pa.nulls(2)})).take(np.array([1, 0]))
    assert unknown.with_others([MemoryRows(table(1))]).read().to_pydict() == {"n": [2, 1, 0], "text": [None, None, "row 0"]}


def test_nulls_are_found():
    assert MemoryRows(table(5)).take(np.array([3])).has_nulls("text")
    assert not MemoryRows(table(5)).has_nulls("n")


def test_merging_copies_small_tables_only(monkeypatch):
    monkeypatch.setattr(joins_rows, "LARGE", 100)
    large = table(100)
    merged = MemoryRows(large).with_others(
        [MemoryRows(table(10)), MemoryRows(table(20)), MemoryRows(pa.record_batch({"n": [1], "text": pa.nulls(1)}))]
    )
    tables = merged.reached(np.array([0])).tables
    assert tables[0] is large
    assert [part.num_rows for part in tables] == [100, 31]
    assert merged.reached(np.array([130, 5, 100])).rows().to_pydict() == {"n": [1, 5, 0], "text": [None, "row 5", "row 0"]}
