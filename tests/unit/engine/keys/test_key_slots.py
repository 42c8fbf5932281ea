"""Whatever the types of keys are, and whenever they change: every key keeps its slot, and comes back as it was."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.engine.keys.slots import KeySlots
from evenflow.state.key_index import DictIndex, IntegerIndex

SMALL = st.integers(-5, 5)
COLUMNS = st.one_of(
    st.lists(SMALL).map(lambda keys: pa.array(keys, pa.int64())),
    st.lists(SMALL).map(lambda keys: pa.array(keys, pa.int8())),
    st.lists(st.integers(0, 2**64 - 1)).map(lambda keys: pa.array(keys, pa.uint64())),
    st.lists(st.one_of(SMALL, st.none())).map(lambda keys: pa.array(keys, pa.int64())),
    st.lists(st.sampled_from("abc")).map(lambda keys: pa.array(keys, pa.string())),
)


@given(st.lists(st.tuples(COLUMNS, st.lists(st.one_of(SMALL, st.none(), st.sampled_from("abc")), unique=True)), max_size=8))
def test_slots_agree_with_a_dict_of_values(steps):
    slots, model = KeySlots("count"), {}
    for column, gone in steps:
        where = slots.of([column])
        for key, slot in zip(column.to_pylist(), where.tolist(), strict=True):
            assert model.setdefault(key, slot) == slot
        removed = slots.known(gone)
        assert sorted(removed.tolist()) == sorted(model[key] for key in gone if key in model)
        slots.remove(removed)
        model = {key: slot for key, slot in model.items() if key not in gone}
        assert dict(zip(slots.keys(slots.everything()), slots.everything().tolist(), strict=True)) == model


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()])
def test_integers_come_back_in_their_type(kind):
    slots = KeySlots("count")
    slots.of([pa.array([5, 6, 5], kind)])
    assert isinstance(slots.index, IntegerIndex)
    assert slots.columns(np.array([1, 0])) == [pa.array([6, 5], kind)]


@pytest.mark.parametrize(
    "columns",
    [
        pytest.param([pa.array(["a"])], id="strings"),
        pytest.param([pa.array([None], pa.int64())], id="a null"),
        pytest.param([pa.array([1], pa.int32())], id="another type"),
        pytest.param([pa.array([1], pa.uint64())], id="too large"),
    ],
)
def test_the_first_other_key_ends_it_for_good(columns):
    slots = KeySlots("count")
    first = slots.of([pa.array([5, 1])]).tolist()
    slots.of(columns)
    assert isinstance(slots.index, DictIndex)
    assert slots.of([pa.array([5, 1])]).tolist() == first


def test_keys_of_several_columns():
    slots = KeySlots("count")
    assert slots.known([(1, "a")]).tolist() == []
    assert slots.of([pa.array([1, 1, 1]), pa.array(["a", "b", "a"])]).tolist() == [0, 1, 0]
    assert [column.to_pylist() for column in slots.columns(np.array([1, 0]))] == [[1, 1], ["b", "a"]]
    assert slots.known([(1, "b"), (2, "a")]).tolist() == [1]


def test_keys_that_come_and_go_are_found_in_a_small_table():
    index, slots = IntegerIndex(), np.arange(1_000)
    for turn in range(50):
        keys = np.arange(1_000) * 7 + turn * 100_000
        index.add(keys, slots, slots)
        assert index.find(keys).tolist() == slots.tolist()
        index.remove(slots)
        assert set(index.find(keys).tolist()) == {-1}
    assert index.nbytes <= 8 * 1_000 + 4 * 8_192
