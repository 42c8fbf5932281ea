"""A scaling decision: the new numbers of workers of operators, and the reason.

A decision is data: it says what should change, not how. Operators that it doesn't name stay unchanged.

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
    """A scaling decision.

    `parallelism`: the workers of each operator that should have more or fewer. `remove_node`: the node to return, whose instances
    move as `relocate` says. `rebalance`: operators whose keys should be rebalanced. `reason`: a sentence for people. `add_nodes`:
    the number of nodes to request.
    """

    parallelism: Mapping[str, int] = field(default_factory=dict)
    remove_node: str | None = None
    rebalance: tuple[str, ...] = ()
    reason: str = ""
    add_nodes: int = 0
    relocate: tuple[Relocation, ...] = ()

    @property
    def changes(self) -> bool:
        """True if anything is to be changed."""
        return bool(self.parallelism or self.rebalance or self.remove_node is not None or self.add_nodes)

    def to_dict(self) -> dict[str, Any]:
        """Return the decision as JSON values; empty `add_nodes` and `relocate` are omitted."""
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
        """Return the decision as JSON, as `evenflow plan scale` prints it."""
        return json.dumps(self.to_dict(), allow_nan=False)
