"""Keyed streams row by row: where the keys stay, and what is refused because they would not."""

from __future__ import annotations

import re

import pytest

import evenflow as ef

ROWS = [{"k": "a", "v": 1, "t": 0}, {"k": "b", "v": 2, "t": 1000}]


def keyed():
    return ef.Dataflow("keyed").read(ef.from_items(ROWS)).key_by("k")


@pytest.mark.parametrize(
    ("build", "keys"),
    [
        pytest.param(lambda s: s.filter(lambda row: True), ("k",), id="filter"),
        pytest.param(lambda s: s.map(dict).flat_map(lambda row: [row]).map_batches(lambda batch: batch), ("k",), id="functions"),
        pytest.param(lambda s: s.select("v", "k"), ("k",), id="select"),
        pytest.param(lambda s: s.drop("v", "t"), ("k",), id="drop"),
        pytest.param(lambda s: s.rename(k="name", v="k"), ("name",), id="rename"),
        pytest.param(lambda s: s.rename({"k": "v", "v": "k"}), ("v",), id="swap"),
        pytest.param(lambda s: s.branch(lambda row: True)[1], ("k",), id="branch"),
        pytest.param(lambda s: s.named("source").parallelism(2), ("k",), id="settings"),
        pytest.param(lambda s: s.key_by("v", "t"), ("v", "t"), id="other keys"),
    ],
)
def test_stream_stays_keyed(build, keys):
    stream = build(keyed())
    assert isinstance(stream, ef.KeyedStream)
    assert stream.aggregate(n=ef.count()).node.keys == keys


def test_dead_letters_of_a_keyed_stream_are_had_as_of_any_other(refused):
    flow, good, bad = ef.Dataflow("letters"), [], []
    rows = flow.read(ef.from_items(ROWS)).key_by("k").map(lambda row: row | {"w": 1 // (row["v"] - 1)}, on_error="dead_letter")
    rows.dead_letters.write(ef.to_list(bad, name="bad"))
    rows.write(ef.to_list(good, name="rows")).aggregate(n=ef.count(), emit="final").write(ef.to_list([], name="counts"))
    flow.run(runtime="local").wait("60s")
    assert ([row["k"] for row in good], [letter["error"] for letter in bad]) == (["b"], ["ZeroDivisionError"])


WRONG = {
    "drop of a key": (lambda s: s.drop("v", "k"), "drop: the stream is keyed by k, and k would be gone: keep it, or call"),
    "select without the key": (lambda s: s.select("v"), "select: the stream is keyed by k, and k would be gone"),
    "another column gets the key's name": (lambda s: s.rename(v="k"), "rename: `v` would get the name `k` of a key column"),
    "no columns": (lambda s: s.select(), "select(): give the names of columns"),
    "a map that takes the key away": (lambda s: s.map(lambda row: row["v"]).aggregate(n=ef.count()), "no key column `k`; there are: item"),
    "a branch by text": (lambda s: s.branch("v > 1"), "branch('v > 1'): expected a function of (row)"),
    "an unread branch": (
        lambda s: s.branch(lambda row: True)[0].write(ef.to_list([])), "operator `branch` on its port `false` go nowhere: write both",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_methods_that_would_lose_keys_or_rows_are_refused(ended, name):
    build, said = WRONG[name]
    assert re.search(re.escape(said), str(ended(lambda stream: build(stream.key_by("k")))))
