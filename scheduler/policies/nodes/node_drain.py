"""How a node's workers leave: which operators get fewer workers, and which workers another process has to take over.

Workers of an operator are numbered from 0, and those with the highest numbers leave. So every operator gets as many fewer as it has on the
node, and at least one stays; a worker on the node whose number stays goes on in another process, elsewhere.

Invariant: after both, the workers that there are and that were not replaced are on other nodes.

>>> places = {"read-0": "a", "count-0": "b", "count-1": "a", "count-2": "b"}
>>> node_drain({"read": 1, "count": 3}, {"count"}, places, "a")
NodeDrain(node='a', parallelism={'count': 2}, replaced=('read-0', 'count-1'))
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ....engine.protocol.ids import WorkerId, worker_id


@dataclass(frozen=True, slots=True)
class NodeDrain:
    """`parallelism`: of the operators that get fewer workers, how many; `replaced`: workers that go on in another process."""

    node: str
    parallelism: Mapping[str, int]
    replaced: tuple[WorkerId, ...]


def node_drain(workers: Mapping[str, int], scalable: Collection[str], places: Mapping[WorkerId, str], node: str) -> NodeDrain:
    """`workers`: how many each operator has; `scalable`: the operators whose workers can be fewer; `places`: the node of each worker."""
    fewer: dict[str, int] = {}
    replaced: list[WorkerId] = []
    for operator, count in workers.items():
        here = [index for index in range(count) if places[worker_id(operator, index)] == node]
        after = max(1, count - len(here)) if operator in scalable else count
        if after < count:
            fewer[operator] = after
        replaced += [worker_id(operator, index) for index in here if index < after]
    return NodeDrain(node, fewer, tuple(replaced))
