"""All that a page shows of a job at one moment, as one answer: what is new since the last one, and the present state of what changes.

Invariant: making it costs the coordinator no more for more key groups. Loads stay in the arrays of the workers' windows, and owners in
those of the routing tables; whoever asks adds them up.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, fields
from typing import Any

from ...balancer.verdict import Verdict
from ...engine.protocol.ids import WorkerId
from ...engine.protocol.routing import RoutingTable
from ...engine.protocol.split_route import Dealt
from ..load.dropped_records import DroppedRecordAt
from ..load.window import WorkerWindow
from ..policies.controller import DecisionRecord
from ..policies.dataflow.scaled_stage import ScaledStage
from ..policies.dataflow.settings import DEFAULTS, PolicySettings
from ..policies.nodes.cluster_view import ClusterView
from .failures import Failure
from .reports import CheckpointReport, MigrationReport, NodeScalingReport, ScalingReport
from .status import JobStatus


@dataclass(frozen=True, slots=True)
class BalanceLook:
    """What automatic balancing saw in its newest window: max / mean load of the workers, the least possible, and what it made of them."""

    imbalance: float
    floor: float
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class StageView:
    """A stage: the operators that are chained in it, its workers by index, and the stages that it sends to.

    `table`: who owns its key groups now, None without keyed state; `dealable`: the sides whose rows may be dealt when a hot key is split.
    `balancer`: the policy that balances it, or `off`; `look`: what that saw last. `scaled`: what scaling policies know of it.
    """

    name: str
    operators: tuple[str, ...]
    workers: tuple[WorkerId, ...]
    outputs: tuple[str, ...]
    is_source: bool
    table: RoutingTable | None = None
    dealable: tuple[Dealt, ...] = ()
    balancer: str = "off"
    look: BalanceLook | None = None
    scaled: ScaledStage | None = None


@dataclass(frozen=True, slots=True)
class JobView:
    """`now`: seconds since the epoch, by the coordinator's clock. `stages` in topological order. `windows`: those that ended since the time
    asked for, each worker's oldest first; `migrations`, `scalings`, `node_scalings`, `checkpoints`: those that are not over, or ended since
    then; `decisions` of the scaling policy since then, and the newest before. `look`: the policy's newest look. `threshold`: the load over
    the floor at which the job calls it uneven; `least_busy`: the part of its time for which the hottest worker is busy if that matters.
    `plan_windows`, `split_hot_keys`: how a balancer plans that is asked by hand; `policy_settings`: what scaling policies are told.
    `failures`: the newest, the oldest first. `dropped_records`: the newest ones. `cluster`: its nodes and where the
    workers are, None where there are no nodes; `worker_cpus`: that a worker sets aside; `saves_state`: whether workers can go on elsewhere
    from a checkpoint.

    It is pickled into bytes: Ray's messages have gaps beside arrays, which it doesn't clear (`actors/processes/packed_call.py`).
    """

    now: float
    status: JobStatus
    stages: tuple[StageView, ...]
    windows: tuple[WorkerWindow, ...]
    migrations: tuple[MigrationReport, ...] = ()
    scalings: tuple[ScalingReport, ...] = ()
    node_scalings: tuple[NodeScalingReport, ...] = ()
    decisions: tuple[DecisionRecord, ...] = ()
    look: DecisionRecord | None = None
    checkpoints: tuple[CheckpointReport, ...] = ()
    threshold: float = 1.2
    least_busy: float = 0.05
    plan_windows: int = 5
    split_hot_keys: bool = True
    policy_settings: PolicySettings = DEFAULTS
    failures: tuple[Failure, ...] = ()
    dropped_records: tuple[DroppedRecordAt, ...] = ()
    cluster: ClusterView | None = None
    worker_cpus: float = 0.0
    saves_state: bool = False

    def __reduce__(self) -> Any:
        return _unpickled, (pickle.dumps([getattr(self, field.name) for field in fields(self)]),)


def _unpickled(packed: bytes) -> JobView:
    return JobView(*pickle.loads(packed))  # noqa: S301 -- part of a pickle that is being loaded
