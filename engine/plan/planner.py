"""The planner: from the logical graph to stages of chained operators, and the channels between their workers.

An edge is chained (no channel, batches by reference) if its reader has one input, needs no partitioning and has the same
parallelism. An aggregate that can be combined before the exchange gets its combiner at the end of the upstream stage.
"""

from __future__ import annotations

from collections.abc import Collection

from ..errors import FlowError
from ..keys.unkeyed import UNKEYED
from ..operators.aggregation.combine import SUFFIX
from ..operators.base import Operator
from ..operators.keyed import KeyedOperator
from ..operators.own_time import OwnTime
from ..operators.rows.broadcast import Broadcast
from ..operators.rows.read import Read
from ..operators.rows.write import Write
from ..protocol.ids import ChannelId, WorkerNumber
from ..protocol.routing import even_table
from ..sink import Sink
from ..source import Source
from .channel_spec import ChannelSpec
from .columns import check_columns
from .event_times import check_event_times
from .filtered_sources import telling_sources
from .graph import Graph, Node
from .needed_columns import reading_needed
from .physical import Plan, Stage, StageOutput
from .resources import NO_RESOURCES
from .task_spec import ChainedOperator, ExchangeSpec, TaskSettings, TaskSpec
from .weights import with_weights
from .worker_bounds import UNBOUND, WorkerBounds


def plan(graph: Graph, *, parallelism: int = 1, combine: bool = True, settings: TaskSettings | None = None) -> Plan:
    """Return the physical plan of a graph; `parallelism` is the default of every operator.

    Raises FlowError if the graph can't run.
    """
    graph.check()
    check_columns(graph)
    untimed = check_event_times(graph)
    settings = settings if settings is not None else TaskSettings()
    reading = telling_sources(reading_needed(with_weights(graph)))
    stages = _stages(reading, parallelism, combine, untimed)
    for stage in stages:
        if stage.parallelism > settings.key_groups:
            raise FlowError(f"operator `{stage.name}`: parallelism {stage.parallelism} is more than the {settings.key_groups} key groups")
    tasks, channels = _tasks(stages, settings)
    return Plan(graph.name, tuple(stages), tuple(tasks), tuple(channels), len(channels), len(tasks)).knowing(check_columns(reading))


def _stages(graph: Graph, default: int, combine: bool, untimed: Collection[int]) -> list[Stage]:
    stages: list[Stage] = []
    place: dict[int, tuple[Stage, int]] = {}
    for node in graph.ordered():
        parallelism = node.parallelism if node.parallelism is not None else default
        upstream = place[node.inputs[0].node][0] if node.inputs else None
        if upstream is not None and (_stays(node) or _has_few_rows(upstream, node)):
            parallelism = upstream.parallelism
        if upstream is not None and upstream.parallelism == parallelism and _may_chain(upstream, node):
            edge = node.inputs[0]
            upstream.chain.append(ChainedOperator(node.name, _operator(node), ((place[edge.node][1], edge.port),)))
            upstream.bounds = _common_bounds(upstream, node)
            place[node.id] = upstream, len(upstream.chain) - 1
            continue
        stage = Stage(node.name, parallelism, bounds=node.bounds, resources=node.resources or NO_RESOURCES)
        operator = _operator(node)
        pair = operator.combined() if combine and node.keys is not None and not _reads_late(graph, node) else None
        stage.chain.append(ChainedOperator(node.name, pair[1] if pair is not None else operator))
        for edge in node.inputs:
            above, position = place[edge.node]
            source = position, edge.port
            if pair is not None:
                above.chain.append(ChainedOperator(f"{node.name}{SUFFIX}", pair[0], (source,)))
                source = len(above.chain) - 1, "out"
            tells_columns = isinstance(operator, KeyedOperator) and operator.needs_columns
            to_all = isinstance(graph.nodes[edge.node].operator, Broadcast)
            keys = None if to_all else node.keys
            above.outputs.append(StageOutput(source, stage.name, keys, tells_columns, to_all, edge.node in untimed))
        stages.append(stage)
        place[node.id] = stage, 0
    return stages


def _stays(node: Node) -> bool:
    return isinstance(node.operator, Operator) and node.operator.stays_with_input


def _has_few_rows(upstream: Stage, node: Node) -> bool:
    """Return True if a node without settings of its own reads the results of an operator without keys.

    More workers would have nothing to do.
    """
    own = node.parallelism is not None or node.bounds != UNBOUND or node.resources is not None
    return upstream.keys == UNKEYED and not own and _may_chain(upstream, node)


def _may_chain(upstream: Stage, node: Node) -> bool:
    """Return True if a node with as many workers as the stage before it can run in them: not with other resources of its own.

    An operator with an event time of its own runs in the workers of a source, or begins a stage with a fixed number of workers. A
    broadcast has a worker of its own: that of a stage that grew could not put the rows in one order.
    """
    if isinstance(node.operator, Broadcast) or node.resources not in (None, upstream.resources):
        return False
    if isinstance(node.operator, OwnTime) and not upstream.is_source and not isinstance(upstream.chain[0].operator, OwnTime):
        return False
    return len(node.inputs) == 1 and node.keys is None


def _common_bounds(stage: Stage, node: Node) -> WorkerBounds:
    try:
        return stage.bounds.both(node.bounds)
    except FlowError as error:
        raise FlowError(
            f"operator `{node.name}` runs in the workers of `{stage.name}`, and the bounds of both are incompatible: {error}"
        ) from error


def _operator(node: Node) -> Operator:
    if isinstance(node.operator, Source):
        return Read(node.operator)
    if isinstance(node.operator, Sink):
        return Write(node.operator)
    return node.operator


def _reads_late(graph: Graph, node: Node) -> bool:
    """Return True if the late stream has a reader. It carries the original rows, so there can be no combiner."""
    return any(port == "late" for _, port in graph.consumers(node))


def _tasks(stages: list[Stage], settings: TaskSettings) -> tuple[list[TaskSpec], list[ChannelSpec]]:
    by_name = {stage.name: stage for stage in stages}
    channels: list[ChannelSpec] = []
    inputs: dict[str, list[ChannelId]] = {}
    exchanges: dict[str, list[ExchangeSpec]] = {}
    for stage in stages:
        for output in stage.outputs:
            target = by_name[output.target]
            forward = output.keys is None and not output.to_all and stage.parallelism == target.parallelism
            table = even_table(settings.key_groups, target.parallelism) if output.keys is not None else None
            for i in range(stage.parallelism):
                ids = []
                for j in [i] if forward else range(target.parallelism):
                    channel = ChannelSpec(ChannelId(len(channels)), stage.workers[i], target.workers[j])
                    channels.append(channel)
                    inputs.setdefault(channel.receiver, []).append(channel.id)
                    ids.append(channel.id)
                marks = output.tells_columns, output.to_all, output.untimed
                exchange = ExchangeSpec(output.source, tuple(ids), target.name, output.keys, table, *marks)
                exchanges.setdefault(stage.workers[i], []).append(exchange)
    tasks: list[TaskSpec] = []
    for stage in stages:
        for i, name in enumerate(stage.workers):
            task = TaskSpec(
                stage.name,
                i,
                stage.parallelism,
                tuple(stage.chain),
                tuple(exchanges.get(name, ())),
                tuple(inputs.get(name, ())),
                WorkerNumber(len(tasks)),
                settings,
            )
            tasks.append(task)
    return tasks, channels
