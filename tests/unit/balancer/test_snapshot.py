"""Existing snapshots are consistent, and show how uneven they are and how even they could be."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pytest

from evenflow.balancer.snapshot import GroupColumns, GroupLoad, KeyColumns, KeyLoad, LoadSnapshot, SplitKey
from evenflow.balancer.snapshot_json import snapshot_from_json, snapshot_to_json
from evenflow.engine.errors import SnapshotError

DOCUMENT = {
    "workers": 4,
    "key_groups": [{"group": 0, "worker": 1, "load": 0.13, "state_bytes": 4096}, {"group": 5, "worker": 1, "load": 0.4, "state_bytes": 0}],
    "hot_keys": [{"key": "JFK", "group": 5, "load": 0.3, "state_bytes": 64}],
}


def changed(entries: str, **fields: object) -> str:
    document = json.loads(json.dumps(DOCUMENT))
    document[entries][0].update(fields)
    return json.dumps(document)


def test_floor_of_the_published_case():
    shares = 1 / np.arange(1, 100_001)
    shares /= shares.sum()
    assert shares[0] == pytest.approx(0.083, abs=0.0005)
    snapshot = LoadSnapshot(16, [GroupLoad(0, 0, 1.0)], [KeyLoad("hottest", 0, float(shares[0]))])
    assert snapshot.floor == pytest.approx(1.32, abs=0.005)


def test_floor_is_one_without_hot_keys():
    assert LoadSnapshot(16, [GroupLoad(0, 0, 1.0)]).floor == 1.0


def test_without_load_everything_is_even():
    snapshot = LoadSnapshot(3, [GroupLoad(0, 0, 0.0)], [KeyLoad("idle", 0, 0.0)])
    assert (snapshot.imbalance, snapshot.floor) == (1.0, 1.0)
    assert LoadSnapshot(3, []).imbalance == 1.0


def test_a_key_with_a_route_of_its_own_counts_at_its_worker():
    snapshot = LoadSnapshot(3, [GroupLoad(7, 0, 1.0)], [KeyLoad("JFK", 7, 0.75, worker=2)])
    assert snapshot.worker_loads().tolist() == [0.25, 0.0, 0.75]


def test_a_key_without_one_counts_with_its_group():
    snapshot = LoadSnapshot(2, [GroupLoad(7, 1, 1.0)], [KeyLoad("JFK", 7, 0.75)])
    assert snapshot.worker_loads().tolist() == [0.0, 1.0]


def test_json_is_read_as_documented():
    snapshot = snapshot_from_json(json.dumps(DOCUMENT))
    assert snapshot.key_groups == (GroupLoad(0, 1, 0.13, 4096), GroupLoad(5, 1, 0.4, 0))
    assert snapshot.hot_keys == (KeyLoad("JFK", 5, 0.3, 64),)
    assert json.loads(snapshot_to_json(snapshot)) == DOCUMENT


def test_a_snapshot_survives_json_and_pickling():
    keys = [KeyLoad(("JFK", 3), 1, 0.5, 8, worker=1), KeyLoad(17, 0, 0.5), KeyLoad(None, 0, 0.25)]
    snapshot = LoadSnapshot(2, [GroupLoad(0, 0, 1.0, 5), GroupLoad(1, 0, 0.5)], keys)
    assert snapshot_from_json(snapshot_to_json(snapshot)) == snapshot
    copy = pickle.loads(pickle.dumps(snapshot))
    assert copy == snapshot
    assert copy.key_workers.tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("{", "is not JSON", id="no JSON"),
        pytest.param("[]", "must be an object", id="a list"),
        pytest.param('{"key_groups": []}', "^workers is missing", id="no workers"),
        pytest.param('{"workers": 2}', "^key_groups is missing", id="no groups"),
        pytest.param('{"workers": 0, "key_groups": []}', "workers is 0", id="zero workers"),
        pytest.param('{"workers": true, "key_groups": []}', "workers is True", id="workers by a truth value"),
        pytest.param('{"workers": 2, "key_groups": {}}', "key_groups must be a list of objects, not dict", id="groups by name"),
        pytest.param('{"workers": 2, "key_groups": [3]}', r"key_groups\[0\] must be an object, not 3", id="a bare group"),
        pytest.param('{"workers": 2, "key_groups": [{"group": 1, "load": 1}]}', r"key_groups\[0\].worker is missing", id="a field missing"),
        pytest.param(changed("key_groups", load=-0.5), r"key_groups\[0\].load is -0.5: it must be a number, from 0", id="negative load"),
        pytest.param(changed("key_groups", load=math.nan), "the load snapshot is not JSON: NaN is not a number", id="NaN"),
        pytest.param(changed("key_groups", load=math.inf), "not JSON: Infinity is not a number", id="infinite load"),
        pytest.param(changed("key_groups", load=1e300), r"key_groups\[0\].load is 1e\+300", id="a load beyond all measure"),
        pytest.param(changed("key_groups", load=10**99), r"key_groups\[0\].load is 1000", id="a load of 100 digits"),
        pytest.param(changed("key_groups", load=10**400), "not JSON: 1000.* has 401 digits", id="a load of 400 digits"),
        pytest.param('{"workers": 1e999}', "not JSON: 1e999 is not a number", id="a number beyond floating point"),
        pytest.param("[" * 200_000 + "]" * 200_000, "brackets are nested too deeply", id="brackets in brackets"),
        pytest.param(changed("key_groups", load="much"), r"key_groups\[0\].load is 'much'", id="load in words"),
        pytest.param(changed("key_groups", load=None), r"key_groups\[0\].load is None", id="no load"),
        pytest.param(changed("key_groups", group=32768), r"key_groups\[0\].group is 32768: .* from 0 to 32767", id="group out of range"),
        pytest.param(changed("key_groups", group=-1), r"key_groups\[0\].group is -1", id="negative group"),
        pytest.param(changed("key_groups", group=1.5), r"key_groups\[0\].group is 1.5", id="half a group"),
        pytest.param(changed("key_groups", worker=4), r"key_groups\[0\].worker is 4: .* from 0 to 3", id="unknown worker"),
        pytest.param(changed("key_groups", state_bytes=-1), r"key_groups\[0\].state_bytes is -1", id="negative state"),
        pytest.param(changed("key_groups", group=5), "key_groups has group 5 2 times", id="a group twice"),
        pytest.param(
            changed("hot_keys", load=0.5), "hot_keys 'JFK' have a load of 0.5, their group 5 one of 0.4", id="hotter than its group"
        ),
        pytest.param(changed("hot_keys", key=math.inf), "not JSON: Infinity is not a number", id="an infinite key"),
        pytest.param(changed("hot_keys", group=6), r"hot_keys\[0\].group is 6, which is not among the key_groups", id="group not listed"),
        pytest.param(changed("hot_keys", group=99999), r"hot_keys\[0\].group is 99999", id="key's group out of range"),
        pytest.param(changed("hot_keys", worker=9), r"hot_keys\[0\].worker is 9", id="key at an unknown worker"),
        pytest.param(changed("hot_keys", key={"a": 1}), r"hot_keys\[0\].key is an object", id="an object as a key"),
    ],
)
def test_an_impossible_snapshot_is_refused_with_the_name_of_the_field(text, message):
    with pytest.raises(SnapshotError, match=message):
        snapshot_from_json(text)


def test_a_hot_key_is_listed_once():
    with pytest.raises(SnapshotError, match=r"hot_keys\[1\].key is 'JFK', which is listed twice"):
        LoadSnapshot(2, [GroupLoad(0, 0, 1.0)], [KeyLoad("JFK", 0, 0.1), KeyLoad("JFK", 0, 0.1)])


def test_hot_keys_are_not_hotter_than_their_group_together():
    with pytest.raises(SnapshotError, match=r"hot_keys 'a', 'b' have a load of 1\.2"):
        LoadSnapshot(2, [GroupLoad(0, 0, 1.0)], [KeyLoad("a", 0, 0.6), KeyLoad("b", 0, 0.6)])


NAN = math.nan


def columns(workers=(0, 1, 1), loads=(3.0, 1.0, 2.0), sizes=(10, 0, 5)):
    return GroupColumns(np.array(workers), np.array(loads), np.array(sizes))


def keys(names=("JFK", "ATL"), groups=(0, 2), loads=(2.0, 1.0), sizes=(4, 0), workers=(None, 0), left=(NAN, 0.5)):
    return KeyColumns(list(names), np.array(groups, np.int64), np.array(loads), np.array(sizes), list(workers), np.array(left))


def test_a_snapshot_of_columns_is_that_of_its_rows():
    split = SplitKey("ORD", 1, "left", (1, 0), (0.5, 0.5))
    made = LoadSnapshot.of_columns(2, columns(), keys(), [split], ("left",))
    rows = [GroupLoad(0, 0, 3.0, 10), GroupLoad(1, 1, 1.0), GroupLoad(2, 1, 2.0, 5)]
    expected = LoadSnapshot(2, rows, [KeyLoad("JFK", 0, 2.0, 4), KeyLoad("ATL", 2, 1.0, 0, 0, 0.5)], [split], ("left",))
    assert made == expected
    assert made.hot_keys[0].left is None
    assert pickle.loads(pickle.dumps(made)) == made
    for name in (
        "group_ids",
        "group_workers",
        "group_loads",
        "group_bytes",
        "key_at",
        "key_workers",
        "key_loads",
        "key_bytes",
        "split_loads",
    ):
        assert getattr(made, name).tolist() == getattr(expected, name).tolist(), name


def test_a_snapshot_of_columns_has_no_other_attributes():
    with pytest.raises(AttributeError, match="no attribute 'loads'"):
        LoadSnapshot.of_columns(2, columns(), keys()).loads  # noqa: B018 -- the lookup is what fails


@pytest.mark.parametrize(
    ("groups", "hot", "message"),
    [
        (columns(loads=(3.0, NAN, 2.0)), keys(), r"key_groups\[1\].load is nan"),
        (columns(loads=(3.0, -1.0, 2.0)), keys(), r"key_groups\[1\].load is -1"),
        (columns(workers=(0, 2, 1)), keys(), r"key_groups\[1\].worker is 2"),
        (columns(sizes=(10, -1, 5)), keys(), r"key_groups\[1\].state_bytes is -1"),
        (columns(), keys(names=("JFK", "JFK")), "'JFK'.* is listed twice"),
        (columns(), keys(loads=(4.0, 1.0)), "hot_keys 'JFK' have a load of 4, their group 0 one of 3"),
        (columns(), keys(workers=(None, 2)), r"hot_keys\[1\].worker is 2"),
        (columns(), keys(left=(NAN, 1.5)), r"hot_keys\[1\].left is 1.5, which is more"),
    ],
)
def test_inconsistent_columns_are_refused_as_rows_are(groups, hot, message):
    with pytest.raises(SnapshotError, match=message):
        LoadSnapshot.of_columns(2, groups, hot)


def test_a_key_is_split_or_whole_in_columns_too():
    with pytest.raises(SnapshotError, match="a key is split or whole"):
        LoadSnapshot.of_columns(2, columns(), keys(), [SplitKey("ATL", 1, "left", (1, 0), (0.5, 0.5))], ("left",))
