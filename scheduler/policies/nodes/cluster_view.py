"""What a job sees of the cluster that it runs on: nodes, and where its workers are. A value, taken for each look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ....engine.protocol.ids import WorkerId
from .placement import Node, Place


@dataclass(frozen=True, slots=True)
class ClusterView:
    """`nodes`: the nodes that are alive, with the job's processes on them. `places` of the workers. `reserved`: all spares have started."""

    nodes: tuple[Node, ...] = ()
    places: Mapping[WorkerId, Place] = field(default_factory=dict)
    reserved: bool = True
