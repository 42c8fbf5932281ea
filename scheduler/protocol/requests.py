"""Requests to a running job, as values: changes and questions.

`Request[A]` is a request that is answered with an `A`. `AnyRequest` names them all, so that a `match` over them is checked to be
complete.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from ...balancer.snapshot import LoadSnapshot
from ...engine.plan.physical import Plan
from ...engine.plan.task_spec import TaskSettings
from ...engine.plan.upgrade.verdicts import UpgradePlan
from ...engine.protocol.read_value import ReadValue
from ...engine.protocol.split_route import Dealt
from ...state.errors import EvenflowError
from ..load.metrics import HISTORY, OperatorLoad, WorkerFigures
from ..policies.base import ScalingPolicy
from ..policies.controller import DecisionRecord, Mode
from .changed_settings import SettingChange
from .reports import CheckpointReport, MigrationReport, NodeScalingReport, SavepointReport, ScalingReport, UpgradeReport
from .saved_table import SavedTable
from .status import JobStatus, Progress
from .upgrade_options import UpgradeOptions
from .view import JobView

A = TypeVar("A")
R = TypeVar("R")
A_co = TypeVar("A_co", covariant=True)


class Request(Generic[A_co]):
    """A request that is answered with an `A_co`."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Stop(Request[None]):
    """Stop at a barrier: rows read before it are processed and committed; operators' state is kept for another run.

    `drain`: end the sources instead, so that windows and timers fire. `savepoint`: the folder or URL to copy that state to.
    """

    drain: bool = False
    savepoint: str | None = None


@dataclass(frozen=True, slots=True)
class Cancel(Request[None]):
    """End at once; uncommitted output is lost. `discard`: no start of the program continues the run."""

    discard: bool = False


@dataclass(frozen=True, slots=True)
class Fail(Request[None]):
    """End with this error: something outside the workers failed."""

    error: EvenflowError


@dataclass(frozen=True, slots=True)
class Rebalance(Request[int]):
    """Plan by the balancer `policy` and move by `strategy` (None: the job's). The migration's number."""

    operator: str
    policy: str
    strategy: str | None = None


@dataclass(frozen=True, slots=True)
class MoveKeys(Request[int]):
    """Move key groups and single keys of an operator to its worker `to`. The migration's number."""

    operator: str
    groups: tuple[int, ...]
    keys: tuple[Hashable, ...]
    to: int
    strategy: str | None = None


@dataclass(frozen=True, slots=True)
class SplitHotKey(Request[int]):
    """Share a hot key of a join with its workers `to`: rows of the side `dealt` are dealt, the others go to all. The migration's
    number.
    """

    operator: str
    key: Hashable
    to: tuple[int, ...]
    dealt: Dealt


@dataclass(frozen=True, slots=True)
class UnsplitHotKey(Request[int]):
    """Give all of a split key to its home again. The migration's number."""

    operator: str
    key: Hashable


@dataclass(frozen=True, slots=True)
class Balance(Request[None]):
    """Balance an operator automatically by `policy`, or no longer: `off`."""

    operator: str
    policy: str


@dataclass(frozen=True, slots=True)
class Scale(Request[int]):
    """Give an operator `parallelism` workers. The scaling's number."""

    operator: str
    parallelism: int
    strategy: str | None = None


@dataclass(frozen=True, slots=True)
class ScaleOut(Request[int]):
    """Use `nodes` more nodes; `policy` says for which operators. The node scaling's number."""

    nodes: int
    policy: str = "stela"


@dataclass(frozen=True, slots=True)
class ScaleIn(Request[int]):
    """Give a node back; `policy` says which. The node scaling's number."""

    policy: str = "stela"


@dataclass(frozen=True, slots=True)
class Autoscale(Request[None]):
    """Scale all operators by `policy`, or by the one of that name, or no longer: `off`."""

    policy: str | ScalingPolicy[Any]
    mode: Mode


@dataclass(frozen=True, slots=True)
class UpgradeCode(Request[int | None]):
    """Exchange the job's code for that of `plan` while it runs; `everything`: take all code as changed.

    `environment`: of the new workers' processes, as Ray's `runtime_env`; None for the job's. The upgrade's number, None if nothing has
    changed.
    """

    plan: Plan
    options: UpgradeOptions = field(default_factory=UpgradeOptions)
    everything: bool = False
    environment: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class AbortUpgrade(Request[None]):
    """Take the new code of the upgrade under way back."""


@dataclass(frozen=True, slots=True)
class ChangeSettings(Request[tuple[SettingChange, ...]]):
    """Change these settings, by name. The changes."""

    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TakeCheckpoint(Request[int]):
    """Take a checkpoint as soon as none is under way. Its number."""


@dataclass(frozen=True, slots=True)
class TakeSavepoint(Request[int]):
    """Save the whole state in the folder or URL `path`. The number of its checkpoint."""

    path: str


@dataclass(frozen=True, slots=True)
class ShowStatus(Request[JobStatus]):
    """The job's state."""


@dataclass(frozen=True, slots=True)
class ShowProgress(Request[Progress]):
    """Ask for the job's state and the sinks' payloads from number `seen` of `incarnation` on; earlier payloads are discarded."""

    seen: int
    incarnation: str = ""


@dataclass(frozen=True, slots=True)
class ShowFigures(Request[list[WorkerFigures]]):
    """Ask for the figures of every worker."""


@dataclass(frozen=True, slots=True)
class ShowLoad(Request[OperatorLoad]):
    """The load of an operator over its newest `windows`."""

    operator: str
    windows: int = HISTORY


@dataclass(frozen=True, slots=True)
class ShowSnapshot(Request[LoadSnapshot]):
    """The load of an operator as balancers see it."""

    operator: str


@dataclass(frozen=True, slots=True)
class ShowHistory(Request[list[R]], Generic[R]):
    """Ask for the newest reports of class `kind`, oldest first, for example `ShowHistory(MigrationReport)`."""

    kind: type[R]


@dataclass(frozen=True, slots=True)
class ShowView(Request[JobView]):
    """Ask for a page's contents: the present state, and everything new since `since` (seconds since the epoch)."""

    since: float = 0.0


@dataclass(frozen=True, slots=True)
class Planning:
    """The settings by which a job was planned: the default number of workers, if aggregates are combined, and those of its tasks."""

    parallelism: int
    combine: bool
    settings: TaskSettings


@dataclass(frozen=True, slots=True)
class KeyAnswer:
    """The value of a key, None if it has no state."""

    value: ReadValue | None


@dataclass(frozen=True, slots=True)
class ReadKey(Request[KeyAnswer | None]):
    """Ask for the value of a key in an operator's state. None while there is no answer: ask again, with the same `token`, which no
    other read has.
    """

    operator: str
    key: Hashable
    token: str


@dataclass(frozen=True, slots=True)
class ShowTable(Request[SavedTable | None]):
    """Ask where the newest complete checkpoint has an operator's state; None if there is no checkpoint yet."""

    operator: str


@dataclass(frozen=True, slots=True)
class ShowChanges(Request[UpgradePlan]):
    """Compare the running job with `plan`; `everything`: take all code as changed."""

    plan: Plan
    everything: bool = False


@dataclass(frozen=True, slots=True)
class ShowPlanning(Request[Planning]):
    """Ask for the settings by which the job was planned."""


ChangeRequest = (
    Stop | Cancel | Fail | Rebalance | MoveKeys | SplitHotKey | UnsplitHotKey | Balance
    | Scale | ScaleOut | ScaleIn | Autoscale | UpgradeCode | AbortUpgrade | ChangeSettings | TakeCheckpoint | TakeSavepoint
)  # fmt: skip
Question = (
    ShowStatus | ShowProgress | ShowFigures | ShowLoad | ShowSnapshot | ShowHistory[Any] | ShowView | ReadKey | ShowTable
    | ShowChanges | ShowPlanning
)  # fmt: skip
AnyRequest = ChangeRequest | Question

HISTORIES: tuple[Question, ...] = tuple(
    map(ShowHistory, (CheckpointReport, SavepointReport, MigrationReport, ScalingReport, NodeScalingReport, UpgradeReport, DecisionRecord))
)
"""The questions that a job answers after its end."""


class Responder(Protocol):
    """Answers requests: the interpreter of a job, or a connection to its coordinator."""

    def ask(self, request: Request[A]) -> A: ...
