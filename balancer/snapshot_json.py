"""Conversion of load snapshots from and to JSON, for `evenflow plan balance`.

>>> text = '{"workers": 2, "key_groups": [{"group": 0, "worker": 1, "load": 0.5, "state_bytes": 4096}], "hot_keys": []}'
>>> snapshot_from_json(text).key_groups
(GroupLoad(group=0, worker=1, load=0.5, state_bytes=4096),)
>>> snapshot_to_json(snapshot_from_json(text)) == text
True
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator
from typing import Any

from ..engine.errors import SnapshotError
from .outside_json import object_of, shown
from .snapshot import GroupLoad, KeyLoad, LoadSnapshot, SplitKey


def snapshot_from_json(text: str) -> LoadSnapshot:
    """Parse the snapshot in `text`. `hot_keys`, `split_keys`, `dealable` and every `state_bytes` are optional; unknown fields are
    ignored.

    A key is a string, a number, a boolean, null, or a list of these for a key of several columns (a tuple in the snapshot).
    Raises SnapshotError for text that is not JSON, or, naming the field, for an inconsistent snapshot.
    """
    document = object_of(text, "the load snapshot", '{"workers": 4, "key_groups": [...], "hot_keys": [...]}')
    dealable = document.get("dealable", [])
    if not isinstance(dealable, list):
        raise SnapshotError(f"dealable is {shown(dealable)}: it must be a list of sides, left and right")
    return LoadSnapshot(_required(document, "workers", ""), _groups(document), _keys(document), _splits(document), dealable)


def snapshot_to_json(snapshot: LoadSnapshot) -> str:
    """Return JSON for `snapshot_from_json`. Raises TypeError for keys that JSON can't hold, ValueError for NaN and infinite ones."""
    keys = [key._asdict() for key in snapshot.hot_keys]
    for key in keys:
        for name in ("worker", "left"):
            if key[name] is None:
                del key[name]
    groups = [group._asdict() for group in snapshot.key_groups]
    document: dict[str, Any] = {"workers": snapshot.workers, "key_groups": groups, "hot_keys": keys}
    if snapshot.split_keys:
        document["split_keys"] = [split._asdict() for split in snapshot.split_keys]
    if snapshot.dealable:
        document["dealable"] = list(snapshot.dealable)
    return json.dumps(document, allow_nan=False)


def _groups(document: dict[str, Any]) -> Iterator[GroupLoad]:
    for where, entry in _entries(document, "key_groups"):
        group, worker, load = (_required(entry, name, where) for name in ("group", "worker", "load"))
        yield GroupLoad(group, worker, load, entry.get("state_bytes", 0))


def _keys(document: dict[str, Any]) -> Iterator[KeyLoad]:
    if "hot_keys" not in document:
        return
    for where, entry in _entries(document, "hot_keys"):
        key, group, load = (_required(entry, name, where) for name in ("key", "group", "load"))
        yield KeyLoad(_hashable(key, where), group, load, entry.get("state_bytes", 0), entry.get("worker"), entry.get("left"))


def _splits(document: dict[str, Any]) -> Iterator[SplitKey]:
    if "split_keys" not in document:
        return
    for where, entry in _entries(document, "split_keys"):
        key, group, dealt, workers, loads = (_required(entry, name, where) for name in ("key", "group", "dealt", "workers", "loads"))
        for name, value in (("workers", workers), ("loads", loads)):
            if not isinstance(value, list):
                raise SnapshotError(f"{where}{name} is {shown(value)}: it must be a list")
        yield SplitKey(_hashable(key, where), group, dealt, tuple(workers), tuple(loads), entry.get("copied", 0.0))


def _entries(document: dict[str, Any], name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    entries = _required(document, name, "")
    if not isinstance(entries, list):
        raise SnapshotError(f"{name} must be a list of objects, not {type(entries).__name__}")
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise SnapshotError(f"{name}[{index}] must be an object, not {shown(entry)}")
        yield f"{name}[{index}].", entry


def _required(entry: dict[str, Any], name: str, where: str) -> Any:
    if name not in entry:
        raise SnapshotError(f"{where}{name} is missing from the load snapshot")
    return entry[name]


def _hashable(key: Any, where: str) -> Hashable:
    if isinstance(key, dict):
        raise SnapshotError(f"{where}key is an object: a key is a string, a number, a boolean, null, or a list of these")
    return tuple(_hashable(part, where) for part in key) if isinstance(key, list) else key
