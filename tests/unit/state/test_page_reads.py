"""Reads by several threads give what one thread reads."""

from __future__ import annotations

import random

import lmdb
import pytest

from evenflow.state.backends import page_reads
from evenflow.state.backends.lmdb import LmdbBackend
from evenflow.state.backends.page_reads import SAMPLE, PageReads

KEYS = 5_000


def place(number):
    return b"%06d" % number


@pytest.fixture
def env(tmp_path):
    with lmdb.open(str(tmp_path), max_readers=PageReads.READERS, map_size=1 << 24) as env:
        with env.begin(write=True) as txn:
            txn.cursor().putmulti([(place(n), b"%d" % n) for n in range(0, KEYS, 2)])
        yield env


@pytest.fixture
def reads(env):
    reads = PageReads(env)
    yield reads
    reads.close()


@pytest.mark.parametrize("size", [1, SAMPLE, SAMPLE + 1, 3_000])
@pytest.mark.parametrize("faults", [0, 1_000], ids=["all pages are there", "pages are missing"])
def test_each_place_has_its_value_or_none(env, reads, size, faults, monkeypatch):
    counted = iter([0, faults])
    monkeypatch.setattr(page_reads, "_major_faults", lambda: next(counted))
    numbers = random.Random(size).choices(range(KEYS), k=size)
    with env.begin() as txn:
        found = reads.values(txn, [place(n) for n in numbers])
    assert found == [b"%d" % n if n % 2 == 0 else None for n in numbers]


def test_threads_read_if_the_sample_waited_for_the_disk(env, reads, monkeypatch):
    counted, asked = iter([0, 0, 0, SAMPLE]), []
    monkeypatch.setattr(page_reads, "_major_faults", lambda: next(counted))
    monkeypatch.setattr(reads, "side_by_side", lambda places: asked.append(len(places)) or [None] * len(places))
    with env.begin() as txn:
        for _ in range(2):
            assert len(reads.values(txn, [place(n) for n in range(200)])) == 200
    assert asked == [200 - SAMPLE]


def test_keys_that_are_too_long_for_lmdb_are_read_by_threads_too(tmp_path, monkeypatch):
    monkeypatch.setattr(page_reads, "MOST_FAULTS", 0)
    states = LmdbBackend("count", str(tmp_path))
    keys = [b"%d" % n * (300 if n % 3 else 1) for n in range(500)]
    states.put_many([1] * len(keys), keys, keys)
    assert states.get_many([1] * len(keys), keys) == keys
    assert states.get_many([2] * len(keys), keys) == [None] * len(keys)
    states.close()
