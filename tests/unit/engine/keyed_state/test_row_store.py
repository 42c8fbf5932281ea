"""The rows of a join in a backend: read by number, in the types of their time, and deleted only when no earlier reader is left."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from evenflow.engine.joins.rows import MemoryRows
from evenflow.engine.keyed_state.kinds.row_store import AT_ONCE, RowStore
from evenflow.state.backends.lmdb import LmdbBackend
from evenflow.state.errors import StateBackendError


@pytest.fixture
def backend():
    backend = LmdbBackend("join", None)
    yield backend
    backend.close()


@pytest.fixture
def store(backend):
    return RowStore(backend, 0)


def rows(*values, kind=None):
    return MemoryRows(pa.record_batch({"n": pa.array(values, kind), "text": [str(value) for value in values]}))


def test_rows_of_many_batches_are_read_in_the_order_that_was_asked_for(store):
    kept = [store.keep(rows(*range(first, first + 10))) for first in range(0, 100, 10)]
    together = kept[0].with_others(kept[1:])
    order = np.random.default_rng(1).permutation(100)
    assert together.take(order).read().column("n").to_pylist() == order.tolist()
    twice = together.reached(np.array([7, 3, 7]))
    assert twice.rows().to_pylist() == [{"n": n, "text": str(n)} for n in (7, 3, 7)]
    assert twice.filter(np.array([False, True, True])).column("n").to_pylist() == [3, 7]


def test_column_that_was_null_at_first_takes_its_later_type(store):
    early, late = store.keep(rows(None, None)), store.keep(rows(5, 6, kind=pa.int16()))
    both = early.with_others([late]).take(np.array([2, 0, 3]))
    assert both.read().column("n") == pa.array([5, None, 6], pa.int16())
    assert both.has_nulls("n")
    assert not both.has_nulls("text")


def test_forgotten_rows_are_deleted_once_no_reader_needs_them(store, backend):
    kept = store.keep(rows(*range(AT_ONCE + 1)))
    reading = store.reading()
    kept.forget(np.arange(AT_ONCE + 1) > 0)
    assert backend.count() == AT_ONCE + 1
    assert len(kept.read()) == AT_ONCE + 1
    del reading
    store.keep(rows(7))
    assert backend.count() == 2
    there, left = kept.kept()
    assert np.flatnonzero(there).tolist() == left.column("n").to_pylist() == [0]


def test_row_that_is_gone_is_an_error_and_not_a_missing_row(store, backend):
    kept = store.keep(rows(1, 2, 3))
    backend.clear()
    with pytest.raises(StateBackendError, match="3 of 3 rows of a join are gone from the state backend"):
        kept.read()
