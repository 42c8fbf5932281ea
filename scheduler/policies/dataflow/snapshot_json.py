"""Dataflow snapshots as JSON, the input of `evenflow plan scale`.

>>> text = '{"operators": [{"name": "src", "parallelism": 1, "source_rate": 9}, {"name": "o", "parallelism": 2}], "edges": [["src", "o"]]}'
>>> snapshot_from_json(text).sources
('src',)
>>> snapshot_to_json(snapshot_from_json(text)) == text
True
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from ....balancer.outside_json import object_of, shown
from ....engine.errors import SnapshotError
from .figures import SUMMED, InstanceFigures, OperatorFigures
from .settings import PolicySettings
from .snapshot import DataflowSnapshot, Edge

_FIELDS = tuple(field.name for field in fields(OperatorFigures) if field.name not in {"nodes", "instances"})
_SETTINGS = tuple(field.name for field in fields(PolicySettings))
_WHOLE = ("time", "reconfiguration_s", "node_loads")


def snapshot_from_json(text: str) -> DataflowSnapshot:
    """Parse a snapshot. Unknown fields are ignored; settings that not every policy has are an error.

    An operator's `instances` may give rates: a rate that the operator does not give is the sum over its instances. An edge is
    [from, to] or [from, to, share]. Raises SnapshotError, naming the field, for invalid JSON and for an impossible snapshot.
    """
    document = object_of(text, "the dataflow snapshot", '{"operators": [...], "edges": [...], "policy": {...}}')
    operators = tuple(_operator(entry, f"operators[{index}]") for index, entry in enumerate(_list(document, "operators")))
    listed = _list(document, "edges") if "edges" in document else []
    edges = tuple(_edge(entry, f"edges[{index}]") for index, entry in enumerate(listed))
    others = {name: document[name] for name in _WHOLE if name in document}
    _object(others.get("node_loads", {}), "node_loads")
    return DataflowSnapshot(operators, edges, _settings(document.get("policy", {})), **others)


def snapshot_to_json(snapshot: DataflowSnapshot) -> str:
    """Return the text that `snapshot_from_json` reads, without defaults."""
    document: dict[str, Any] = {"operators": [_operator_dict(operator) for operator in snapshot.operators]}
    document["edges"] = [[*edge[:2]] if edge.share == 1 else [*edge] for edge in snapshot.edges]
    policy = _said(snapshot.settings, PolicySettings(), _SETTINGS)
    if policy:
        document["policy"] = policy
    for name in _WHOLE:
        if getattr(snapshot, name):
            document[name] = getattr(snapshot, name)
    return json.dumps(document, allow_nan=False)


def _operator(entry: Any, where: str) -> OperatorFigures:
    _object(entry, where)
    for name in ("name", "parallelism"):
        if name not in entry and not (name == "parallelism" and "instances" in entry):
            raise SnapshotError(f"{where}.{name} is missing from the dataflow snapshot")
    known = {name: entry[name] for name in _FIELDS if entry.get(name) is not None or name in {"name", "parallelism"} & entry.keys()}
    if "nodes" in entry:
        known["nodes"] = tuple(_list(entry, "nodes", where))
    if any(not isinstance(node, str) for node in known.get("nodes", ())):
        raise SnapshotError(f"{where}.nodes must be a list of names, one for each instance")
    if "instances" not in entry:
        return OperatorFigures(**known)
    instances = [_instance(one, f"{where}.instances[{index}]") for index, one in enumerate(_list(entry, "instances", where))]
    name = known.pop("name")
    return OperatorFigures.summed(name, instances, **known)


def _instance(entry: Any, where: str) -> InstanceFigures:
    return InstanceFigures(**{name: value for name, value in _object(entry, where).items() if name in SUMMED})


def _edge(entry: Any, where: str) -> Edge:
    if not isinstance(entry, list) or len(entry) not in {2, 3} or not all(isinstance(name, str) for name in entry[:2]):
        raise SnapshotError(f"{where} is {shown(entry)}: it must be a list of two operators' names, from and to, and maybe a share")
    return Edge(*entry)


def _settings(entry: Any) -> PolicySettings:
    for name in _object(entry, "policy"):
        if name not in _SETTINGS:
            raise SnapshotError(f"policy.{shown(name)[1:-1]} is no setting of every policy: use one of {', '.join(_SETTINGS)}")
    return PolicySettings(**entry)


def _operator_dict(operator: OperatorFigures) -> dict[str, Any]:
    document = {"name": operator.name, "parallelism": operator.parallelism}
    document |= _said(operator, OperatorFigures(operator.name, operator.parallelism), _FIELDS)
    if operator.nodes:
        document["nodes"] = list(operator.nodes)
    if operator.instances:
        document["instances"] = [_said(one, InstanceFigures(), SUMMED) for one in operator.instances]
    return document


def _said(value: Any, silent: Any, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names if getattr(value, name) != getattr(silent, name)}


def _object(entry: Any, where: str) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise SnapshotError(f"{where} must be an object, not {shown(entry)}")
    return entry


def _list(document: dict[str, Any], name: str, where: str = "") -> list[Any]:
    path = f"{where}.{name}" if where else name
    if name not in document:
        raise SnapshotError(f"{path} is missing from the dataflow snapshot")
    entries = document[name]
    if not isinstance(entries, list):
        raise SnapshotError(f"{path} must be a list, not {type(entries).__name__}")
    return entries
