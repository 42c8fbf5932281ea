"""The contract of all backends; the remote one uses a real Valkey server."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from evenflow.state.backends import base, memory

GROUPS = 16
LONG = b"k" * 2_000


def group_of(key: bytes) -> int:
    return sum(key) % GROUPS


def groups_of(keys: list[bytes]) -> list[int]:
    return [group_of(key) for key in keys]


def put(backend: Any, values: dict[bytes, bytes]) -> None:
    backend.put_many(groups_of(list(values)), list(values), list(values.values()))


def get(backend: Any, *keys: bytes) -> list[bytes | None]:
    return list(backend.get_many(groups_of(list(keys)), list(keys)))


def everything(snapshot: Any) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for keys, values in snapshot:
        for key, value in zip(keys, values, strict=True):
            assert key not in found, "a key came twice"
            found[key] = value
    return found


def test_values_are_returned_in_the_order_of_the_requested_keys(backend):
    put(backend, {b"a": b"1", b"b": b"2", LONG: b"3"})
    assert get(backend, LONG, b"c", b"b", b"a") == [b"3", None, b"2", b"1"]


def test_newer_value_replaces_the_older_one(backend):
    put(backend, {b"a": b"1"})
    put(backend, {b"a": b"2"})
    assert get(backend, b"a") == [b"2"]
    assert backend.count() == 1


def test_deleted_key_is_gone_and_one_that_never_was_is_no_error(backend):
    put(backend, {b"a": b"1", LONG: b"2"})
    backend.delete_many(groups_of([b"a", b"x", LONG]), [b"a", b"x", LONG])
    assert get(backend, b"a", LONG) == [None, None]
    assert backend.count() == 0


def test_empty_questions_and_changes_are_fine(backend):
    assert backend.get_many([], []) == []
    backend.put_many([], [], [])
    backend.delete_many([], [])
    assert everything(backend.snapshot()) == {}


@pytest.mark.parametrize("size", [0, 1, 5_000, 300_000])
def test_values_of_any_size_and_content_come_back(backend, size):
    value = bytes(range(256)) * (size // 256) + b"\r\n$-1\0"[: size % 256]
    put(backend, {b"\r\n*3\0": value})
    assert get(backend, b"\r\n*3\0") == [value]


def test_keys_of_a_group_are_those_and_no_others(backend):
    keys = [b"%d" % i for i in range(300)] + [LONG, LONG + b"2"]
    put(backend, dict.fromkeys(keys, b"v"))
    for group in range(GROUPS):
        assert sorted(backend.keys_of(group)) == sorted(key for key in keys if group_of(key) == group)


def test_group_that_is_given_away_leaves_the_others_whole(backend):
    keys = [b"%d" % i for i in range(300)]
    put(backend, {key: b"v" + key for key in keys})
    gone = backend.keys_of(3)
    assert backend.get_many([3] * len(gone), gone) == [b"v" + key for key in gone]
    backend.delete_many([3] * len(gone), gone)
    assert backend.keys_of(3) == []
    assert everything(backend.snapshot()) == {key: b"v" + key for key in keys if group_of(key) != 3}


def test_count_and_bytes_follow_what_is_there(backend):
    assert backend.count() == 0
    put(backend, {b"%d" % i: b"x" * 100 for i in range(1_000)})
    assert backend.count() == 1_000
    assert backend.nbytes() >= 100_000


def test_changes_of_too_many_keys_are_unknown_and_later_ones_are_noted_again(backend, monkeypatch):
    for module in (base, memory):
        monkeypatch.setattr(module, "MOST_NOTED", 3)
    assert backend.changes() is None, "this is the first call"
    put(backend, {b"a": b"1", b"b": b"2", b"c": b"3"})
    assert len(backend.changes()) == 3
    backend.delete_many(groups_of([b"a", b"b"]), [b"a", b"b"])
    put(backend, {b"d": b"4", b"e": b"5"})
    assert backend.changes() is None
    put(backend, {b"f": b"6"})
    assert len(backend.changes()) == 1


def test_clear_forgets_everything(backend):
    put(backend, {b"%d" % i: b"v" for i in range(100)})
    backend.clear()
    assert backend.count() == 0
    assert get(backend, b"1") == [None]
    assert everything(backend.snapshot()) == {}
    put(backend, {b"1": b"w"})
    assert everything(backend.snapshot()) == {b"1": b"w"}


def test_snapshot_shows_what_was_there_when_it_was_taken_whatever_is_written_meanwhile(backend):
    before = {b"%d" % i: b"old" for i in range(9_000)}
    put(backend, before)
    chunks = backend.snapshot()
    first = next(chunks)
    put(backend, {b"%d" % i: b"new" for i in range(0, 12_000, 2)})
    gone = [b"%d" % i for i in range(0, 9_000, 3)]
    backend.delete_many(groups_of(gone), gone)
    put(backend, {b"0": b"back"})
    assert everything([first, *chunks]) == before
    assert get(backend, b"0", b"2", b"3", b"1", b"11998") == [b"back", b"new", None, b"old", b"new"]


def test_second_snapshot_ends_the_one_before(backend):
    put(backend, {b"a": b"1"})
    backend.snapshot()
    put(backend, {b"a": b"2"})
    assert everything(backend.snapshot()) == {b"a": b"2"}


def test_two_backends_share_nothing(make_backend):
    one, other = make_backend(), make_backend()
    put(one, {b"a": b"1"})
    assert get(other, b"a") == [None]
    assert other.count() == 0


class Calls(RuleBasedStateMachine):
    make_backend: Any
    keys = st.sampled_from([b"%d" % i for i in range(40)] + [LONG, LONG + b"2"])
    chunks: Any = None
    frozen: dict[bytes, bytes]
    given: list[Any]

    @initialize()
    def begin(self):
        self.backend, self.model = type(self).make_backend(), dict[bytes, bytes]()

    @rule(values=st.dictionaries(keys, st.binary(max_size=40), max_size=12))
    def put(self, values):
        put(self.backend, values)
        self.model.update(values)

    @rule(keys=st.lists(keys, unique=True, max_size=8))
    def delete(self, keys):
        self.backend.delete_many(groups_of(keys), keys)
        for key in keys:
            self.model.pop(key, None)

    @rule(keys=st.lists(keys, unique=True, max_size=8))
    def get(self, keys):
        assert get(self.backend, *keys) == [self.model.get(key) for key in keys]

    @rule(group=st.integers(0, GROUPS - 1))
    def look_into_a_group(self, group):
        assert sorted(self.backend.keys_of(group)) == sorted(key for key in self.model if group_of(key) == group)

    @rule(group=st.integers(0, GROUPS - 1))
    def give_a_group_away(self, group):
        keys = self.backend.listed(group)
        values = self.backend.take_many([group] * len(keys), keys)
        given = [(key, value) for key, value in zip(keys, values, strict=True) if value is not None]
        assert sorted(given) == sorted((key, value) for key, value in self.model.items() if group_of(key) == group)
        for key, _ in given:
            del self.model[key]

    @rule(groups=st.sets(st.integers(0, GROUPS - 1)))
    def read_groups(self, groups):
        keys, values = self.backend.items_of(sorted(groups))
        assert dict(zip(keys, values, strict=True)) == {key: value for key, value in self.model.items() if group_of(key) in groups}

    @rule(groups=st.sets(st.integers(0, GROUPS - 1), max_size=3))
    def forget_groups(self, groups):
        self.backend.delete_groups(sorted(groups))
        self.model = {key: value for key, value in self.model.items() if group_of(key) not in groups}

    @rule()
    def clear(self):
        self.backend.clear()
        self.model.clear()
        self.chunks = None

    @rule()
    def begin_snapshot(self):
        self.chunks, self.frozen, self.given = self.backend.snapshot(), dict(self.model), []

    @precondition(lambda self: self.chunks is not None)
    @rule()
    def take_a_chunk(self):
        chunk = next(self.chunks, None)
        if chunk is not None:
            self.given.append(chunk)

    @precondition(lambda self: self.chunks is not None)
    @rule()
    def finish_snapshot(self):
        assert everything([*self.given, *self.chunks]) == self.frozen
        self.chunks = None

    @invariant()
    def has_as_many_keys(self):
        assert self.backend.count() == len(self.model)


@pytest.mark.few(1)
def test_any_sequence_of_calls_agrees_with_a_dict(make_backend):
    calls = type("CallsOfThisBackend", (Calls,), {"make_backend": staticmethod(make_backend)})
    run_state_machine_as_test(calls, settings=settings(max_examples=40, stateful_step_count=30, deadline=None))
