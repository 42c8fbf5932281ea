"""A scaling decision: how many workers which operators should have, and why.

A decision is data: it says what should change and nothing of how. An operator that it doesn't name stays as it is.

>>> print(ScalingDecision({"count": 4}, reason="count gets twice what it can do").to_json())
{"parallelism": {"count": 4}, "remove_node": null, "rebalance": [], "reason": "count gets twice what it can do"}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Relocation(NamedTuple):
    """An instance of `operator` goes from node `source` to node `target`."""

    operator: str
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class ScalingDecision:
    """`parallelism`: the workers of each operator that should have more or fewer. `remove_node`: the node to give back, whose instances
    go where `relocate` says. `rebalance`: operators whose keys should be rebalanced. `reason`: a sentence for people. `add_nodes`:
    nodes to ask for.
    """

    parallelism: Mapping[str, int] = field(default_factory=dict)
    remove_node: str | None = None
    rebalance: tuple[str, ...] = ()
    reason: str = ""
    add_nodes: int = 0
    relocate: tuple[Relocation, ...] = ()

    @property
    def changes(self) -> bool:
        """Whether anything is to be done."""
        return bool(self.parallelism or self.rebalance or self.remove_node is not None or self.add_nodes)

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it: `add_nodes` and `relocate` are left out where they say nothing."""
        document: dict[str, Any] = {
            "parallelism": dict(self.parallelism),
            "remove_node": self.remove_node,
            "rebalance": list(self.rebalance),
            "reason": self.reason,
        }
        if self.add_nodes:
            document["add_nodes"] = self.add_nodes
        if self.relocate:
            document["relocate"] = [move._asdict() for move in self.relocate]
        return document

    def to_json(self) -> str:
        """What `evenflow plan scale` prints."""
        return json.dumps(self.to_dict(), allow_nan=False)
