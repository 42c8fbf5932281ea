from __future__ import annotations

import numpy as np
import pytest

from evenflow.state.growing import LEAST, longer
from evenflow.state.key_index import DictIndex
from evenflow.state.slots import Slots


@pytest.mark.parametrize("kind", [np.int64, np.float64, np.bool_, object])
def test_column_keeps_its_rows_and_gets_more_at_its_end(kind):
    column, more = np.array([1, 0, 1], kind), np.array([1, 1], kind)
    grown = longer(column, more)
    assert (grown.tolist(), grown.dtype) == ([1, 0, 1, 1, 1], kind)


def test_column_of_several_words_grows_by_rows():
    assert longer(np.ones((1, 2), np.uint64), np.zeros((2, 2), np.uint64)).tolist() == [[1, 1], [0, 0], [0, 0]]


def test_part_of_another_array_is_copied():
    whole = np.arange(6)
    assert longer(whole[:2], np.zeros(1, np.int64)).tolist() == [0, 1, 0]
    assert whole.tolist() == [0, 1, 2, 3, 4, 5]


def test_large_table_grows_by_a_part_of_itself():
    slots = Slots(DictIndex())
    capacities = []
    for first in range(0, 4 * LEAST, LEAST):
        slots.find(list(range(first, first + LEAST)), lambda places: places.astype(np.uint64))
        capacities.append(slots.capacity)
    slots.find([-1], lambda places: places.astype(np.uint64))
    assert slots.capacity - capacities[-1] == LEAST
