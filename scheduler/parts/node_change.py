"""A change of the nodes that a job uses: more of them, or one less."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from ...engine.protocol.ids import CheckpointNumber, WorkerId
from ..policies.nodes.placement import short
from ..protocol.reports import NodeScalingReport, NodeScalingState
from ..record.operation import Operation
from .operator_scaling import Scaling


@dataclass(slots=True)
class NodeChange(Operation[NodeScalingState]):
    """An addition of nodes, or the return of one.

    `parallelism`: the workers of each operator that changes, before and after; `replaced`: workers that other processes take
    over. `steps`: operators still to be scaled; `scaling`, `checkpoint`: the step under way. `deadline`: when its wait for processes
    or nodes is over. `wanted`: the number of nodes to add, which `policy` fills; `next_look`: when it looks for them again.
    """

    added: tuple[str, ...]
    removed: str | None
    parallelism: Mapping[str, tuple[int, int]]
    replaced: tuple[WorkerId, ...]
    steps: deque[tuple[str, int]]
    scaling: Scaling | None = None
    checkpoint: CheckpointNumber | None = None
    deadline: float = 0.0
    wanted: int = 0
    policy: str = ""
    next_look: float = 0.0

    def __str__(self) -> str:
        if self.removed is not None:
            return f"node {short(self.removed)} is given back"
        return f"node {', '.join(map(short, self.added))} is added"

    def report(self) -> NodeScalingReport:
        """Return the change as `job.scale_out()` and `job.scale_in()` show it."""
        return NodeScalingReport(
            number=self.number,
            state=self.state,
            reason=self.reason,
            began_at=self.begun,
            seconds=self.seconds,
            problem=self.problem,
            added=self.added,
            removed=self.removed,
            parallelism=self.parallelism,
            replaced=self.replaced,
        )
