"""The physical plan of a job: its stages of chained operators, every worker's task, and the channels between the workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from ..errors import RequestError
from ..identity.identity import Identity
from ..operators.keyed import KeyedOperator
from ..operators.own_time import OwnTime
from ..operators.rows.broadcast import Broadcast
from ..operators.rows.read import Read
from ..protocol.ids import FIRST_CODE, CodeVersion, WorkerId, worker_id
from ..protocol.routing import RoutingTable
from ..protocol.split_route import Dealt
from ..source import Source
from ..state_description import StateDescription
from .channel_spec import ChannelSpec
from .columns import Inputs
from .resources import NO_RESOURCES, Resources
from .task_spec import ChainedOperator, TaskSpec
from .worker_bounds import UNBOUND, WorkerBounds


@dataclass(slots=True)
class StageOutput:
    """An output of a stage: records of `source` (position in the chain, port) go to stage `target`, by hash of `keys`, round robin, or
    each to every worker (`to_all`).

    `tells_columns`: all workers of the target get the columns. `untimed`: the records that go to all have no event time.
    """

    source: tuple[int, str]
    target: str
    keys: tuple[str, ...] | None
    tells_columns: bool = False
    to_all: bool = False
    untimed: bool = False


@dataclass(slots=True)
class Stage:
    """Operators that run chained in each of `parallelism` workers; `bounds`: limits for automatic scaling; `resources`: that Ray
    reserves for each. `codes`: the version of the code of each worker; empty if all run the first.
    """

    name: str
    parallelism: int
    chain: list[ChainedOperator] = field(default_factory=list)
    outputs: list[StageOutput] = field(default_factory=list)
    bounds: WorkerBounds = UNBOUND
    resources: Resources = NO_RESOURCES
    codes: tuple[CodeVersion, ...] = ()

    @property
    def workers(self) -> tuple[WorkerId, ...]:
        """Return the names of its workers, in the order of their indexes."""
        return _workers(self.name, self.parallelism, self.codes)

    @property
    def is_source(self) -> bool:
        return isinstance(self.chain[0].operator, Read)

    @property
    def is_keyed(self) -> bool:
        """True if its head has keyed state, which can move."""
        return isinstance(self.chain[0].operator, KeyedOperator)

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the key columns of its head, none without keyed state."""
        head = self.chain[0].operator
        return head.keys if isinstance(head, KeyedOperator) else ()

    @property
    def dealable(self) -> tuple[Dealt, ...]:
        """Return the sides of a join whose rows may be dealt for a split key, none for any other operator."""
        head = self.chain[0].operator
        return head.dealable if isinstance(head, KeyedOperator) else ()

    @property
    def fixed_parallelism(self) -> int | None:
        """Return the only number of workers that its source, or a broadcast, can have, None for any."""
        head = self.chain[0].operator
        if isinstance(head, Broadcast):
            return 1
        return head.source.parallelism if isinstance(head, Read) else None

    @property
    def can_be_scaled(self) -> bool:
        """True if its number of workers can change while the job runs: a source must be able to reassign its splits.

        A new worker with an event time of its own behind an exchange would not know the event times of the others.
        """
        head = self.chain[0].operator
        if isinstance(head, Read):
            return self.fixed_parallelism is None and head.source.can_be_shared_out
        return not isinstance(head, (OwnTime, Broadcast))


@dataclass(frozen=True, slots=True)
class Plan:
    """The physical plan of the flow `name`: its stages in topological order, every worker's task, every channel for records.

    `next_channel`, `next_worker`: the numbers of the next new channel and worker; numbers are never reused. `inputs`: the known
    columns of the operators' inputs. `identities`: of its operators, from the process of the program; empty if they aren't known.
    """

    name: str
    stages: tuple[Stage, ...]
    tasks: tuple[TaskSpec, ...]
    channels: tuple[ChannelSpec, ...]
    next_channel: int
    next_worker: int
    inputs: Inputs = field(default_factory=dict)
    identities: Mapping[str, Identity] = field(default_factory=dict)

    def stage_of(self, operator: str) -> Stage:
        """Return the stage that runs the operator. Raises RequestError, listing all operators, for an unknown one."""
        for stage in self.stages:
            if operator == stage.name or any(chained.name == operator for chained in stage.chain):
                return stage
        names = ", ".join(chained.name for stage in self.stages for chained in stage.chain)
        raise RequestError(f"the job `{self.name}` has no operator `{operator}`; there are: {names}")

    @property
    def sources(self) -> dict[str, Source]:
        """Return the sources that it reads, by operator, including those of lookup tables."""
        operators = {chained.name: chained.operator for stage in self.stages for chained in stage.chain}
        read = {name: (operator.source,) if isinstance(operator, Read) else operator.sources for name, operator in operators.items()}
        return {name: source for name, sources in read.items() for source in sources}

    @property
    def key_groups(self) -> int:
        """Return the number of key groups."""
        return self.tasks[0].settings.key_groups

    @property
    def tables(self) -> dict[str, RoutingTable]:
        """Return the initial routing table of each stage with keyed state."""
        return {e.target: e.table for task in self.tasks for e in task.exchanges if e.table is not None}

    @property
    def state(self) -> dict[str, StateDescription]:
        """Describe the state of each stage with keyed state."""
        heads = {stage.name: stage.chain[0].operator for stage in self.stages}
        return {name: head.state_description() for name, head in heads.items() if isinstance(head, KeyedOperator)}

    @property
    def resources(self) -> dict[str, Resources]:
        """Return the resources of each stage whose operator names some."""
        return {stage.name: stage.resources for stage in self.stages if stage.resources != NO_RESOURCES}

    def knowing(self, inputs: Inputs) -> Plan:
        """Return the plan with operators that know these columns of their inputs."""

        def of(chain: Iterable[ChainedOperator]) -> Iterator[ChainedOperator]:
            return (replace(one, operator=one.operator.knowing(inputs[one.name])) if one.name in inputs else one for one in chain)

        stages = tuple(replace(stage, chain=list(of(stage.chain))) for stage in self.stages)
        return replace(self, inputs=inputs, stages=stages, tasks=tuple(replace(task, chain=tuple(of(task.chain))) for task in self.tasks))

    def numbering_after(self, later: Plan) -> Plan:
        """Return the plan whose next channels and workers get numbers that `later`, which was made from it, has not used."""
        return replace(self, next_channel=later.next_channel, next_worker=later.next_worker)

    def with_tables(self, tables: Mapping[str, RoutingTable]) -> Plan:
        """Return the plan with other initial routing tables, by stage."""
        tasks = [replace(t, exchanges=tuple(replace(e, table=tables.get(e.target, e.table)) for e in t.exchanges)) for t in self.tasks]
        return replace(self, tasks=tuple(tasks))


@lru_cache(maxsize=256)
def _workers(stage: str, parallelism: int, codes: tuple[CodeVersion, ...]) -> tuple[WorkerId, ...]:
    """Return the names of a stage's workers. Cached: a job of 1,000 workers asks for them at every report."""
    return tuple(worker_id(stage, index, code) for index, code in enumerate(codes or (FIRST_CODE,) * parallelism))
