"""The view of a job that a page shows: everything new since the last view, and the present state.

Invariant: the coordinator's cost of a view doesn't grow with the number of key groups. Loads stay in the arrays of the workers'
windows, and owners in those of the routing tables; callers add them up.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
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
from ..policies.nodes.placement import ClusterView
from .failures import Failure
from .reports import CheckpointReport, MigrationReport, NodeScalingReport, ScalingReport, UpgradeReport
from .status import JobStatus


@dataclass(frozen=True, slots=True)
class BalanceObservation:
    """The newest observation of automatic balancing: max / mean load of the workers, the least possible, and the action taken."""

    imbalance: float
    floor: float
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class StageView:
    """A stage: the operators that are chained in it, its workers by index, and the stages that it sends to.

    `table`: the current owners of its key groups, None without keyed state; `dealable`: the sides whose rows may be dealt when a
    hot key is split. `balancer`: the policy that balances it, or `off`; `observation`: its last observation. `scaled`: the stage
    as scaling policies see it.
    """

    name: str
    operators: tuple[str, ...]
    workers: tuple[WorkerId, ...]
    outputs: tuple[str, ...]
    is_source: bool
    table: RoutingTable | None = None
    dealable: tuple[Dealt, ...] = ()
    balancer: str = "off"
    observation: BalanceObservation | None = None
    scaled: ScaledStage | None = None


@dataclass(frozen=True, slots=True)
class JobView:
    """The view of a job.

    `now`: seconds since the epoch, by the coordinator's clock. `stages` in topological order. `windows`: those that ended since
    the requested time, each worker's oldest first; `migrations`, `scalings`, `node_scalings`, `checkpoints`, `upgrades`: those that
    are not over, or ended since then, and the newest upgrade that is over; `decisions` of the scaling policy since then, and the newest
    before. `observation`: the policy's
    newest observation. `threshold`: the load over the floor at which the job calls it uneven; `least_busy`: the busy share of the
    hottest worker from which that matters. `plan_windows`, `split_hot_keys`: settings of a plan by hand; `policy_settings`:
    common settings of the scaling policies; `own_settings`: by the name of a policy, its own settings that are not defaults.
    `failures`: the newest failures, oldest first. `dropped_records`: the newest records that
    operators dropped. `cluster`: its nodes and the workers' places, None where there are no nodes; `worker_cpus`: that a worker
    sets aside; `saves_state`: True if workers can resume on other nodes from a checkpoint. `checkpoint_interval`: the seconds
    between two checkpoints by the settings, None if there is one at the end only.

    It is pickled into bytes: arrays in Ray's messages leave gaps, which Ray doesn't clear (`actors/processes/packed_call.py`).
    """

    now: float
    status: JobStatus
    stages: tuple[StageView, ...]
    windows: tuple[WorkerWindow, ...]
    migrations: tuple[MigrationReport, ...] = ()
    scalings: tuple[ScalingReport, ...] = ()
    node_scalings: tuple[NodeScalingReport, ...] = ()
    decisions: tuple[DecisionRecord, ...] = ()
    observation: DecisionRecord | None = None
    checkpoints: tuple[CheckpointReport, ...] = ()
    threshold: float = 1.2
    least_busy: float = 0.2
    plan_windows: int = 5
    split_hot_keys: bool = True
    policy_settings: PolicySettings = DEFAULTS
    own_settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()
    dropped_records: tuple[DroppedRecordAt, ...] = ()
    cluster: ClusterView | None = None
    worker_cpus: float = 0.0
    saves_state: bool = False
    checkpoint_interval: float | None = None
    upgrades: tuple[UpgradeReport, ...] = ()

    def __reduce__(self) -> Any:
        return _unpickled, (pickle.dumps([getattr(self, field.name) for field in fields(self)]),)


def _unpickled(packed: bytes) -> JobView:
    return JobView(*pickle.loads(packed))  # noqa: S301 -- part of a pickle that is being loaded
