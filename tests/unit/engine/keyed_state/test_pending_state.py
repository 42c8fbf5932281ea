"""Restored state is installed when records need it, once, and is not among the changes of the next checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import evenflow as ef
from evenflow.engine.batch import Batch
from evenflow.engine.errors import RecordError
from evenflow.engine.keyed_state import pending
from evenflow.engine.keyed_state.pending import PendingState
from evenflow.engine.keys.encoding import key_hashes
from evenflow.engine.operators.aggregation.aggregate_running import AggregateRunning, AggregateRunningInstance
from evenflow.engine.operators.state_reader import reading_context
from evenflow.engine.protocol.routing import Move
from evenflow.engine.snapshots import saved_rows
from evenflow.state.hashing import group_of

GROUPS = 4


def counting() -> AggregateRunningInstance:
    instance = AggregateRunning(("key",), {"n": ef.count()}, updates=True).open(reading_context("count"))
    assert isinstance(instance, AggregateRunningInstance)
    return instance


def rows(keys: Sequence[Any]) -> Batch:
    return Batch(pa.record_batch({"key": pa.array(keys)}))


def hashes(keys: Sequence[Any]) -> Any:
    return key_hashes([pa.array(keys)], "count")


def nowhere(batch: Batch, port: str = "out") -> None:
    pass


def chunks_of(*keys: Sequence[Any]) -> Iterator[pa.RecordBatch]:
    for some in keys:
        saved = counting()
        saved.process(rows(some), nowhere)
        yield from (chunk.rows for chunk in saved.state.snapshot())


def restored(*keys: Sequence[Any]) -> AggregateRunningInstance:
    instance = counting()
    for chunk in chunks_of(*keys):
        instance.pending.add(chunk, key_hashes([chunk.column("key")], "count"))
    instance.pending.begin()
    instance.state.changes()
    return instance


def there(instance: AggregateRunningInstance) -> dict[Any, int]:
    return {row["key"]: row["n"] for batch in instance.rows() for row in batch.to_pylist()}


def test_only_the_state_of_keys_that_are_needed_is_installed():
    instance = restored(["a", "b", "a"], ["c", "d"])
    instance.pending.need(hashes(["d", "a", "a", "new"]))
    assert there(instance) == {"a": 2, "d": 1}
    assert instance.pending.left == 2


def test_state_is_installed_once_however_often_it_is_needed():
    instance = restored(["a", "b"])
    for _ in range(3):
        instance.pending.need(hashes(["a"]))
    instance.pending.everything()
    assert there(instance) == {"a": 1, "b": 1}


def test_slices_install_the_rest(monkeypatch):
    monkeypatch.setattr(pending, "SLICE", 2)
    monkeypatch.setattr(saved_rows, "CHUNK_ROWS", 2)
    instance = restored(*([key] for key in range(7)))
    instance.pending.need(hashes([0, 1, 3]))
    left = []
    while instance.pending.left:
        instance.pending.some()
        left.append(instance.pending.left)
    assert left == [3, 1, 0]
    assert there(instance) == dict.fromkeys(range(7), 1)
    assert instance.pending.nbytes == 0


@pytest.mark.parametrize("own", [{"b"}, {"a", "c", "d"}, {"a", "b", "c", "d"}])
def test_rows_that_are_not_this_workers_are_never_installed(own):
    instance = counting()
    for chunk in chunks_of(["a", "b"], ["c", "d"]):
        keys = chunk.column("key").to_pylist()
        instance.pending.add(chunk, hashes(keys), np.array([key in own for key in keys]))
    instance.pending.begin()
    assert instance.pending.left == len(own)
    instance.pending.need(hashes(["a", "d", "new"]))
    assert set(there(instance)) == {"a", "d"} & own
    instance.pending.everything()
    assert set(there(instance)) == own


def test_all_rows_of_a_key_are_installed_together_in_order():
    instance = restored(["a", "b"], ["a"], ["a", "a"])
    instance.pending.need(hashes(["a"]))
    assert there(instance) == {"a": 2}, "the last row replaces the others"
    assert instance.pending.left == 1


def test_a_batch_without_rows_needs_nothing():
    instance = restored(["a"])
    instance.pending.need(np.zeros(0, np.uint64))
    assert instance.pending.left == 1


def test_keys_that_leave_are_installed_first():
    instance = restored(list(range(20)))
    instance.pending.leave(Move(0, 1, (2,)), GROUPS)
    assert there(instance) == {key: 1 for key in range(20) if group_of(hashes([key]), GROUPS)[0] == 2}


def test_installed_state_is_not_among_the_changes():
    instance = restored(["a", "b", "c"])
    instance.pending.need(hashes(["a"]))
    instance.process(rows(["a"]), nowhere)
    instance.pending.everything()
    changes = instance.state.changes()
    assert changes is not None
    assert [chunk.rows.column("key").to_pylist() for chunk in instance.state.delta(changes)] == [["a"]]


def test_chunks_with_columns_of_different_types_are_kept_apart():
    instance = restored([1, 2], [3])
    floats = pa.record_batch({"key": pa.array([4.5])})
    saved = counting()
    saved.process(Batch(floats), nowhere)
    other = PendingState(instance.state, "count")
    for chunk in saved.state.snapshot():
        other.add(chunk.rows, hashes([4.5]))
    other.begin()
    other.everything()
    instance.pending.everything()
    assert there(instance) == {1: 1, 2: 1, 3: 1, 4.5: 1}


def test_state_of_another_kind_is_refused_before_any_record():
    chunk = pa.record_batch({"key": ["a"], "__state": [b"x"]})
    with pytest.raises(RecordError, match="not of an operator like this one"):
        counting().pending.add(chunk, hashes(["a"]))


def test_hashes_that_differ_in_low_bits_only_find_their_rows():
    instance = counting()
    (chunk,) = chunks_of(["a", "b", "c"])
    instance.pending.add(chunk, np.array([8, 9, 1 << 40], np.uint64))
    instance.pending.begin()
    instance.pending.need(np.array([9], np.uint64))
    assert "b" in there(instance)
    assert "c" not in there(instance)
