"""Every known key has its own slot, even if others are removed meanwhile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.state import word_index
from evenflow.state.key_index import DictIndex
from evenflow.state.slots import Slots
from evenflow.state.word_cells import WordCells
from evenflow.state.word_index import STEP, WordIndex

keys = st.lists(st.one_of(st.integers(0, 30), st.integers(-(2**63), 2**63 - 1)), max_size=20)


def hash_of(key: int) -> int:
    return key * 1_000_003 % 2**64


@pytest.fixture(params=["dict", "words", "words that grow"], scope="module")
def index(request):
    """Create an index; one that grows moves 4 cells of a full table, which has 8 or more, in each call."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "words that grow":
            patch.setattr(word_index, "STEP", 4)
            patch.setattr(word_index, "_FIRST_BITS", 3)
        yield DictIndex if request.param == "dict" else lambda: WordIndex(2)


def fitting(slots: Slots, batch: list[int]) -> Any:
    """Return keys in the form of the index; those of two words have a part of the key in each."""
    if not isinstance(slots.index, WordIndex):
        return batch
    keys = np.array(batch, np.int64)
    return np.stack([keys & 7, keys]).view(np.uint64)


def values(slots: Slots, keys: Any) -> list[int]:
    """Return the keys from the index as integers."""
    return keys[1].view(np.int64).tolist() if isinstance(slots.index, WordIndex) else keys


def find(slots: Slots, batch: list[int]) -> list[int]:
    return slots.find(
        fitting(slots, batch), lambda places: np.array([hash_of(batch[place]) for place in places.tolist()], np.uint64)
    ).tolist()


@given(st.lists(st.tuples(st.sampled_from(["find", "remove"]), keys), max_size=12))
def test_slots_agree_with_a_dict_of_keys(index, changes):
    slots, model = Slots(index()), {}
    for change, batch in changes:
        if change == "find":
            known = dict(model)
            where = find(slots, batch)
            model |= dict(zip(batch, where, strict=True))
            assert [model[key] for key in batch] == where
            assert {key: model[key] for key in known} == known, "a key keeps its slot"
            assert sorted(slots.fresh.tolist()) == sorted(model[key] for key in set(batch) - set(known))
        else:
            where = slots.known(fitting(slots, list(dict.fromkeys(batch))))
            slots.remove(where)
            model = {key: slot for key, slot in model.items() if key not in batch}
        assert len(slots) == len(model)
        assert len(set(model.values())) == len(model), "no two keys share a slot"
        assert slots.everything().tolist() == sorted(model.values())
        assert dict(zip(values(slots, slots.keys(slots.everything())), slots.everything().tolist(), strict=True)) == model
        assert slots.capacity > max(model.values(), default=-1)


@given(keys, keys, keys, st.sets(st.integers(0, 7)))
def test_keys_of_a_move_are_found_by_their_groups_and_hashes(index, batch, gone, moving, groups):
    slots = Slots(index())
    find(slots, batch)
    removed = set(batch) & set(gone)
    slots.remove(np.array(find(slots, sorted(removed)), np.int64))
    wanted = np.array([hash_of(key) for key in moving], np.uint64)
    found = slots.where(groups, 8, lambda hashes: np.isin(hashes, wanted))
    there = (set(batch) & set(moving)) - removed
    assert set(values(slots, slots.keys(found))) == {key for key in there if hash_of(key) % 8 in groups}


def test_freed_slots_are_used_again(index):
    slots = Slots(index())
    find(slots, list(range(1000)))
    capacity = slots.capacity
    for first in range(1000, 50_000, 1000):
        slots.remove(slots.everything())
        find(slots, list(range(first, first + 1000)))
    assert slots.capacity == capacity


def test_keys_that_are_looked_up_in_the_same_cell_are_distinguished(monkeypatch):
    monkeypatch.setattr(WordCells, "home", lambda self, keys: np.full(keys.shape[1], self._mask - 1))
    slots = Slots(WordIndex(2))
    assert find(slots, [5, 6, 5, 7]) == [0, 1, 0, 2]
    slots.remove(np.array([1]))
    assert find(slots, [7, 8, 5]) == [2, 1, 0]
    assert slots.known(fitting(slots, [6, 8])).tolist() == [1]


def test_slots_grow_with_the_keys(index):
    slots = Slots(index())
    assert find(slots, list(range(5000))) == list(range(5000))
    assert slots.capacity >= 5000
    assert slots.nbytes > 5000


def test_a_full_table_is_moved_in_steps_and_its_keys_are_found_meanwhile():
    index, moved, piece = WordIndex(1), [], 512
    keys = np.arange(16 * STEP, dtype=np.uint64)[np.newaxis]
    for first in range(0, keys.shape[1], piece):
        index.add(keys, np.arange(first, first + piece), np.arange(first, first + piece))
        index.remove(np.arange(first, first + piece, 2))
        moved.append(0 if index._full is None else index._moved)
        sought = np.arange(max(0, first - 16 * piece), first + piece)
        assert index.find(keys[:, sought]).tolist() == np.where(sought % 2, sought, -1).tolist()
    assert np.count_nonzero(moved) > 20, "it was seen on the move"
    assert max(np.diff(moved)) <= 2 * STEP, "a call moves a step"


def test_keys_for_which_there_is_room_move_no_others(index):
    slots = Slots(index())
    slots.reserve(5000)
    tables = slots.live, getattr(slots.index, "_values", None), getattr(slots.index, "_cells", None)
    assert find(slots, list(range(5000))) == list(range(5000))
    now = slots.live, getattr(slots.index, "_values", None), getattr(slots.index, "_cells", None)
    assert [table is before for table, before in zip(now, tables, strict=True)] == [True] * 3


def test_changes_lack_the_slots_that_were_found_unnoted(index):
    slots = Slots(index())
    slots.changes()
    with slots.unnoted():
        find(slots, list(range(2000)))
    find(slots, [7, 3000])
    assert np.flatnonzero(slots.changes()[0]).tolist() == [7, 2000]


def test_unknown_keys_are_omitted(index):
    slots = Slots(index())
    find(slots, [1, 2])
    assert slots.known(fitting(slots, [2, 3])).tolist() == [1]


def test_changes_are_not_known_once_more_was_removed_than_there_is(index):
    slots = Slots(index())
    assert slots.changes() is None
    for key in range(2_000):
        slots.remove(np.array(find(slots, [key])))
        assert [values(slots, keys) for keys in slots.changes()[1]] == [[key]]
    for key in range(2_000):
        slots.remove(np.array(find(slots, [key])))
    assert slots.changes() is None
    slots.remove(np.array(find(slots, [1])))
    assert [values(slots, keys) for keys in slots.changes()[1]] == [[1]]


def test_removing_nothing_is_no_change(index):
    slots = Slots(index())
    assert slots.changes() is None
    slots.remove(np.array([], np.int64))
    assert slots.changes()[1] == []
