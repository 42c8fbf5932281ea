"""The description of a worker's task: plain data, made by the plan and sent to the worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...state.backends.settings import StateSettings
from ..operators.base import Operator
from ..protocol.ids import FIRST_CODE, Attempt, ChannelId, CodeVersion, WorkerId, WorkerNumber, worker_id
from ..protocol.routing import RoutingTable


@dataclass(frozen=True, slots=True)
class ChainedOperator:
    """An operator of a task: `inputs` are (position in the chain, port) of earlier operators; none for the head."""

    name: str
    operator: Operator
    inputs: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ExchangeSpec:
    """An output: from (position in the chain, port) to the workers of stage `target`, a channel each.

    By hash of `keys` and `table`, or round robin without, or every row to all of them (`to_all`). `tells_columns`: every worker gets
    a batch without rows before the first with new columns. `untimed`: the rows that go to all have no event time.
    """

    source: tuple[int, str]
    channels: tuple[ChannelId, ...]
    target: str
    keys: tuple[str, ...] | None = None
    table: RoutingTable | None = None
    tells_columns: bool = False
    to_all: bool = False
    untimed: bool = False


@dataclass(frozen=True, slots=True)
class TaskSettings:
    """The settings of a task.

    `linger`: seconds that a row may wait for its batch to fill. `save_state`: whether checkpoints hold keyed state. `state`: the
    state backend; `TaskSpec.of_attempt` completes it.
    """

    batch_rows: int = 32_768
    linger: float = 0.005
    key_groups: int = 1024
    track_load: bool = True
    save_state: bool = False
    state: StateSettings = field(default_factory=StateSettings)


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """The task of one worker. `chain[0]` is the head; the head of a source task gets the batches that the source polls.

    `number`: the worker's, from which the ids of its channels for state follow. `joining`: a source task that joins a running job; it
    reads nothing before it gets its position. `code`: the version of the job's code that the chain is from. `environment`: the
    environment of its process, as Ray's `runtime_env`; None for the job's.
    """

    stage: str
    index: int
    parallelism: int
    chain: tuple[ChainedOperator, ...]
    exchanges: tuple[ExchangeSpec, ...]
    inputs: tuple[ChannelId, ...]
    number: WorkerNumber
    settings: TaskSettings = field(default_factory=TaskSettings)
    joining: bool = False
    code: CodeVersion = FIRST_CODE
    environment: Mapping[str, Any] | None = None

    @property
    def name(self) -> WorkerId:
        """Return the worker's name within its job, for example `aggregate-0`."""
        return worker_id(self.stage, self.index, self.code)

    @property
    def operators(self) -> str:
        """Return the names of its operators, for messages."""
        return ", ".join(chained.name for chained in self.chain)

    def of_attempt(self, job: str, attempt: Attempt) -> TaskSpec:
        """Return the task with its state under the name of this attempt of the job, so that attempts never share state."""
        state = replace(self.settings.state, job=job, attempt=attempt)
        return replace(self, settings=replace(self.settings, state=state))
