"""Every key has a slot of its own for as long as it is known, whatever is forgotten meanwhile."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evenflow.state.slots import Slots

keys = st.lists(st.integers(0, 30), max_size=20)


def hash_of(key: int) -> int:
    return key * 1_000_003


def find(slots: Slots, batch: list[int]) -> list[int]:
    return slots.find(batch, lambda places: np.array([hash_of(batch[place]) for place in places.tolist()], np.uint64)).tolist()


@given(st.lists(st.tuples(st.sampled_from(["find", "remove"]), keys), max_size=12))
def test_slots_agree_with_a_dict_of_keys(changes):
    slots, model = Slots(), {}
    for change, batch in changes:
        if change == "find":
            known = dict(model)
            where = find(slots, batch)
            model |= dict(zip(batch, where, strict=True))
            assert [model[key] for key in batch] == where
            assert {key: model[key] for key in known} == known, "a key keeps its slot"
            assert sorted(slots.fresh.tolist()) == sorted(model[key] for key in set(batch) - set(known))
        else:
            where = slots.known(list(dict.fromkeys(batch)))
            slots.remove(where)
            model = {key: slot for key, slot in model.items() if key not in batch}
        assert len(slots) == len(model)
        assert len(set(model.values())) == len(model), "no two keys share a slot"
        assert slots.everything().tolist() == sorted(model.values())
        assert dict(zip(slots.keys(slots.everything()), slots.everything().tolist(), strict=True)) == model
        assert slots.capacity > max(model.values(), default=-1)


@given(keys, keys)
def test_keys_of_a_move_are_found_by_their_hashes(batch, moving):
    slots = Slots()
    find(slots, batch)
    wanted = np.array([hash_of(key) for key in moving], np.uint64)
    assert set(slots.keys(slots.where(lambda hashes: np.isin(hashes, wanted)))) == set(batch) & set(moving)


def test_freed_slots_are_used_again():
    slots = Slots()
    find(slots, list(range(1000)))
    capacity = slots.capacity
    for first in range(1000, 50_000, 1000):
        slots.remove(slots.everything())
        find(slots, list(range(first, first + 1000)))
    assert slots.capacity == capacity


def test_slots_grow_with_the_keys():
    slots = Slots()
    assert find(slots, list(range(5000))) == list(range(5000))
    assert slots.capacity >= 5000
    assert slots.nbytes > 5000


def test_unknown_keys_are_left_out():
    slots = Slots()
    find(slots, [1, 2])
    assert slots.known([2, 3]).tolist() == [1]


def test_changes_are_not_known_once_more_was_removed_than_there_is():
    slots = Slots()
    assert slots.changes() is None
    for key in range(2_000):
        slots.remove(np.array(find(slots, [key])))
        assert len(slots.changes()[1]) == 1
    for key in range(2_000):
        slots.remove(np.array(find(slots, [key])))
    assert slots.changes() is None
    slots.remove(np.array(find(slots, [1])))
    assert slots.changes()[1] == [1]
