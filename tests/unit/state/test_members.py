"""A group's list has all its existing keys, even if many others were added and deleted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evenflow.state.members import GroupMembers

GROUPS = 4


@given(st.lists(st.tuples(st.sampled_from(["come", "go"]), st.sets(st.integers(0, 40), min_size=1)), max_size=15))
def test_every_key_that_exists_is_listed_in_its_group(changes):
    members, existing = GroupMembers(GROUPS), set()
    for change, keys in changes:
        if change == "go":
            existing -= keys
            continue
        new = sorted(keys - existing)
        existing |= keys
        members.add(new, [key % GROUPS for key in new], existing)
    for group in range(GROUPS):
        listed = members.of(group)
        assert {key for key in existing if key % GROUPS == group} <= set(listed)
        assert all(key % GROUPS == group for key in listed)
        assert len(listed) == len(set(listed)), "each once"


def test_lists_do_not_grow_with_the_keys_that_were_forgotten():
    members = GroupMembers(1)
    for first in range(0, 100_000, 100):
        keys = list(range(first, first + 100))
        members.add(keys, [0] * 100, dict.fromkeys(keys))
    assert len(members.of(0)) <= 2 * 100 + 1024 + 100
    assert set(members.of(0)) >= set(range(99_900, 100_000))
