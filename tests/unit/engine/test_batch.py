"""Batches and their pieces."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.engine.batch import Batch, column_values

numbers = st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), min_size=1)


def timed(values):
    return Batch(pa.record_batch({"a": pa.array(values, pa.int64())}), np.arange(len(values)))


@given(values=numbers, cuts=st.lists(st.integers(0, 50), max_size=4))
def test_pieces_put_together_are_the_whole(values, cuts):
    whole = timed(values)
    bounds = sorted({0, len(values), *(cut for cut in cuts if cut < len(values))})
    pieces = [whole.slice(start, end - start) for start, end in pairwise(bounds)]
    again = Batch.concat(pieces)
    assert again.to_rows() == whole.to_rows()
    assert again.times.tolist() == whole.times.tolist()


@given(values=numbers, data=st.data())
def test_taken_and_filtered_rows_keep_their_times(values, data):
    batch = timed(values)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values))))
    kept, taken = batch.filter(mask), batch.take(np.flatnonzero(mask))
    assert kept.times.tolist() == taken.times.tolist() == np.flatnonzero(mask).tolist()
    assert kept.to_rows() == taken.to_rows() == [{"a": value} for value, keep in zip(values, mask, strict=True) if keep]


@given(values=numbers)
def test_values_of_a_column_are_python_values(values):
    column = pa.array(values, pa.int64())
    assert column_values(column) == values
    assert all(type(value) in {int, type(None)} for value in column_values(column))


def test_batches_with_and_without_times_do_not_go_together():
    with pytest.raises(ValueError, match="batches with and without event times can't be concatenated"):
        Batch.concat([timed([1]), Batch(timed([2]).rows)])


def test_column_names_that_are_no_identifiers_are_fine():
    batch = Batch(pa.record_batch({"two words": [1], "it's": [2], "": [3], '"': [4], "{x}": [5], "\\n": [6]}))
    assert batch.to_rows() == [{"two words": 1, "it's": 2, "": 3, '"': 4, "{x}": 5, "\\n": 6}]


def test_bytes_count_the_times_too():
    assert timed([1, 2]).nbytes == Batch(timed([1, 2]).rows).nbytes + 16
