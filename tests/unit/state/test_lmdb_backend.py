"""State in LMDB files: it outgrows every map, snapshots stay true meanwhile, and no file remains."""

from __future__ import annotations

import os
import resource
import signal

import pytest

from evenflow.state.backends.base import pane_group
from evenflow.state.backends.lmdb import LmdbBackend
from evenflow.state.errors import StateBackendError

KEYS = [b"%06d" % i for i in range(4_000)]


@pytest.fixture
def small(tmp_path):
    backend = LmdbBackend("count", str(tmp_path), first_size=1 << 17)
    yield backend
    backend.close()


def test_map_grows_automatically_and_keeps_its_content(small):
    small.put_many([1] * 10, KEYS[:10], [b"first"] * 10)
    for first in range(10, len(KEYS), 500):
        keys = KEYS[first : first + 500]
        small.put_many([2] * len(keys), keys, [b"x" * 1_000] * len(keys))
    assert small.nbytes() > 30 * (1 << 17)
    assert small.get_many([1], KEYS[:1]) == [b"first"]
    assert small.count() == len(KEYS)


def test_map_that_grows_in_the_middle_of_a_snapshot_leaves_it_as_it_was(small):
    small.put_many([1] * len(KEYS), KEYS, [b"old"] * len(KEYS))
    chunks = small.snapshot()
    keys, values = next(chunks)
    size = small._size
    for _ in range(3):
        small.put_many([1] * len(KEYS), KEYS, [os.urandom(1_000) for _ in KEYS])
    assert small._size > size, "the map has grown"
    for more, others in chunks:
        keys, values = keys + more, values + others
    assert (sorted(keys), set(values)) == (KEYS, {b"old"})


def test_panes_are_read_and_forgotten_one_by_one_whatever_their_keys(small):
    keys = [b"short", b"long" * 500, b""]
    groups = [pane_group(pane, group) for pane in (-5, 0, 10**15) for group in (0, 1, 32_767)]
    for group in groups:
        small.put_many([group] * 3, keys, [b"%d" % group] * 3)
    small.put_many([7] * 3, keys, [b"plain"] * 3)
    found, values = small.items_of(groups[3:5])
    assert sorted(found) == sorted(2 * keys)
    assert values == [b"%d" % group for group in groups[3:5] for _ in keys]
    small.delete_groups(groups[3:6])
    assert small.items_of(groups[3:6]) == ([], [])
    assert small.get_many([groups[6]] * 3, keys) == [b"%d" % groups[6]] * 3
    assert sorted(small.keys_of(7)) == sorted(keys)
    assert small.count() == 7 * 3
    assert sum(len(values) for _, values in small.snapshot()) == 7 * 3


def test_files_have_no_names_so_that_nothing_is_left_of_a_process_that_is_killed(tmp_path, small):
    small.put_many([1], [b"a"], [b"1"])
    assert list(tmp_path.iterdir()) == []
    assert small.get_many([1], [b"a"]) == [b"1"]


def test_state_that_can_not_be_read_is_named_with_the_operator_and_its_folder(tmp_path, small):
    small.put_many([1], [b"a"], [b"1"])
    small._env.close()
    for read in (lambda: small.get_many([1], [b"a"]), lambda: small.items_of([1])):
        with pytest.raises(StateBackendError, match=rf"operator `count`: its state in {tmp_path} can't be read: "):
            read()


@pytest.fixture
def full_disk():
    """Limit the files of this process to 1 MB, as if the disk were full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, ignored)


def fill(backend):
    for first in range(100, len(KEYS), 100):
        backend.put_many([2] * 100, KEYS[first : first + 100], [os.urandom(1_000)] * 100)


def test_disk_that_is_full_is_named_with_the_operator_and_what_was_written_before_is_whole(tmp_path, small, full_disk):
    small.put_many([1] * 100, KEYS[:100], [b"before"] * 100)
    with pytest.raises(StateBackendError, match=rf"operator `count`: its state can't be written: .* is the disk of {tmp_path}"):
        fill(small)
    assert small.get_many([1] * 100, KEYS[:100]) == [b"before"] * 100


def test_folder_that_is_not_there_is_named_with_the_operator(tmp_path):
    with pytest.raises(StateBackendError, match=rf"operator `count` can't store its state in {tmp_path}/none: .*StateConfig\(dir=...\)"):
        LmdbBackend("count", str(tmp_path / "none"))
