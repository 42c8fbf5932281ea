"""A chain read from its newest file back is the dict that its files were written from, one after the other."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from evenflow.engine.snapshots import chain
from evenflow.engine.snapshots.chain import removed, replacing, resolved

KEYS = st.tuples(st.sampled_from((None, "a", "b", "c")), st.integers(0, 2))
FILES = st.lists(st.dictionaries(KEYS, st.integers(0, 99) | st.none(), max_size=6), max_size=6)
"""Per file what was written of a key; None: it is gone."""


def columns(keys):
    """Return key columns of one type, except that a column of nulls has none."""
    text = [key[0] for key in keys]
    kind = pa.string() if any(word is not None for word in text) else pa.null()
    return [pa.array(text, kind), pa.array([key[1] for key in keys], pa.int64())]


def written(changes):
    there = {key: value for key, value in changes.items() if value is not None}
    gone = [key for key, value in changes.items() if value is None]
    rows = pa.record_batch([*columns(there), pa.array(list(there.values()), pa.int64())], names=["k", "l", "n"])
    return [*(batch.rows for batch in removed(["k", "l"], [columns([key]) for key in gone], 2)), replacing(rows, ["k", "l"])]


def read(files):
    chunks = list(resolved(reversed(files)))
    rows = [tuple(row.values()) for chunk in chunks for row in chunk.to_pylist()]
    assert len({row[:2] for row in rows}) == len(rows), "a key comes once"
    assert not any((chunk.schema.metadata or {}) for chunk in chunks)
    return {row[:2]: row[2] for row in rows}


@given(FILES)
def test_chain_is_the_last_that_was_written_of_every_key(files):
    live = {}
    for changes in files:
        live.update(changes)
    assert read([written(changes) for changes in files]) == {key: value for key, value in live.items() if value is not None}


@given(FILES, FILES)
def test_a_workers_changes_of_a_key_do_not_affect_the_chain_of_another(one, other):
    chains = [[written(changes) for changes in files] for files in (one, other)]
    alone = [read(files) for files in chains]
    assert [read(files) for files in reversed(chains)] == alone[::-1]


def test_chunk_that_says_nothing_of_older_files_is_added_to_them():
    whole, more = pa.record_batch({"k": ["a", "b"], "n": [1, 2]}), pa.record_batch({"k": ["a"], "n": [3]})
    assert [chunk.to_pydict() for chunk in resolved([[more], [whole]])] == [{"k": ["a"], "n": [3]}, {"k": ["a", "b"], "n": [1, 2]}]


def test_a_replaced_key_may_be_named_by_fewer_columns():
    whole = pa.record_batch({"k": ["a", "b", "a"], "pane": [1, 1, 2], "n": [1, 2, 3]})
    pane, key = replacing(pa.record_batch({"pane": [1]}), ["pane"]), replacing(pa.record_batch({"k": ["a"], "pane": [2]}), ["k", "pane"])
    assert next(resolved([[pane], [whole]])).to_pydict() == {"k": ["a"], "pane": [2], "n": [3]}
    assert next(resolved([[key], [whole]])).to_pydict() == {"k": ["a", "b"], "pane": [1, 1], "n": [1, 2]}
    assert list(resolved([[key, pane], [whole]])) == []


def test_key_that_left_and_came_back_within_a_file_is_there():
    whole = pa.record_batch({"k": ["a"], "n": [1]})
    gone, back = replacing(pa.record_batch({"k": ["a"]}), ["k"]), pa.record_batch({"k": ["a"], "n": [7]})
    for file in ([gone, back], [back, gone]):
        assert [chunk.to_pydict() for chunk in resolved([file, [whole]])] == [{"k": ["a"], "n": [7]}]


def test_keys_of_newer_files_may_have_a_wider_type():
    changed = replacing(pa.record_batch({"key": pa.array([1, 2**40]), "n": [5, 6]}), ["key"])
    whole = pa.record_batch({"key": pa.array([1, 2], pa.int32()), "n": [1, 2]})
    assert [chunk.to_pydict() for chunk in resolved([[changed], [whole]])] == [{"key": [1, 2**40], "n": [5, 6]}, {"key": [2], "n": [2]}]


def test_small_chunks_come_together_up_to_a_limit_and_only_with_an_equal_schema(monkeypatch):
    monkeypatch.setattr(chain, "CHUNK_ROWS", 4)
    ones = [pa.record_batch({"n": [number]}) for number in range(6)]
    marked = replacing(pa.record_batch({"n": [6]}), ["n"])
    found = list(chain.gathered([*ones, marked, marked, pa.record_batch({"n": [7.5]})]))
    assert [chunk.to_pydict()["n"] for chunk in found] == [[0, 1, 2, 3], [4, 5], [6, 6], [7.5]]
    assert found[2].schema.equals(marked.schema, check_metadata=True)
    monkeypatch.setattr(chain, "CHUNK_BYTES", 16)
    assert [chunk.num_rows for chunk in chain.gathered(ones)] == [2, 2, 2]
    assert list(chain.gathered([])) == []
