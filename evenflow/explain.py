"""Explains a plan to people, as text and as a Mermaid flowchart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from .engine.keys.unkeyed import UNKEYED, shown
from .engine.operators.function import FunctionOperator
from .engine.operators.keyed import KeyedOperator
from .engine.operators.rows.read import Read
from .engine.plan.graph import Graph, Node
from .engine.plan.physical import Plan
from .engine.plan.resources import described
from .engine.plan.weights import weighed_inputs
from .engine.sink import Sink
from .engine.source import Source
from .engine.updates import kind_of
from .scheduler.configs.worker import WorkerConfig
from .scheduler.load.quiet_inputs import meeting
from .scheduler.policies.nodes.memory import words

EXACTLY_ONCE = "exactly once"
"""The beginning of the guarantee of a source or sink that neither loses nor repeats rows."""


def explain(graph: Graph, plan: Plan, workers: WorkerConfig) -> str:
    """Describe the logical plan (a line per operator), the physical plan (a line per stage), the state backends, and the guarantees."""
    lines = [f"Dataflow {graph.name}", "", "Logical plan"]
    weighed = weighed_inputs(graph)
    for node in graph.ordered():
        inputs = ", ".join(
            f"{graph.nodes[e.node].name}{'' if e.port == 'out' else f'.{e.port}'}{' by weight' * ((node.id, e) in weighed)}"
            for e in node.inputs
        )
        kind = "" if isinstance(node.operator, Sink) else kind_of(node.updates)
        lines.append(f"  {node.name:<24} {'<- ' + inputs if inputs else 'source':<32} {kind:<24} {_describe(node, plan)}".rstrip())
    lines += ["", "Physical plan"]
    for stage in plan.stages:
        chain = " -> ".join(chained.name for chained in stage.chain)
        own = described(stage.resources.amounts(0.0))
        lines.append(f"  {stage.name} x {stage.parallelism}{f' (each {own})' if own else ''}: {chain}")
        for output in stage.outputs:
            way = "forward" if output.keys is None else "as one group" if output.keys == UNKEYED else f"by hash of {', '.join(output.keys)}"
            target = plan.stage_of(output.target)
            if output.keys is None and target.parallelism != stage.parallelism:
                way = "round robin"
            if output.to_all:
                way = "to every worker" + ", which it makes wait for no event time" * output.untimed
            lines.append(f"    to {output.target} {way}, {stage.parallelism} x {target.parallelism} workers")
    count = len(plan.tasks)
    lines += [f"  {count} worker{'s' * (count > 1)} and a coordinator: on Ray {words(count + 1)} of memory, without state"]
    lines += [f"  {_reserved(plan, workers)}"]
    keyed = [chained.name for stage in plan.stages for chained in stage.chain if isinstance(chained.operator, KeyedOperator)]
    if keyed:
        lines += ["", "State", *(f"  {name}: {plan.tasks[0].settings.state.describe()}" for name in keyed)]
    waits = list(_waits(plan))
    if waits:
        lines += ["", "Event time", *(f"  {line}" for line in waits)]
    return "\n".join([*lines, "", "Guarantees", *(f"  {line}" for line in _guarantees(graph, plan))])


def to_mermaid(graph: Graph) -> str:
    """Draw the logical plan as a Mermaid flowchart; edges name the columns that partition them."""
    lines = ["flowchart LR"]
    for node in graph.ordered():
        shape = ('(["', '"])') if isinstance(node.operator, (Source, Sink)) else ('["', '"]')
        lines.append(f"    n{node.id}{shape[0]}{node.name}{shape[1]}")
    for node in graph.ordered():
        for edge in node.inputs:
            labels = [
                *([", ".join(shown(node.keys))] if node.keys and shown(node.keys) else []),
                *([edge.port] if edge.port != "out" else []),
            ]
            arrow = f'-->|"{" ".join(labels)}"|' if labels else "-->"
            lines.append(f"    n{edge.node} {arrow} n{node.id}")
    return "\n".join(lines)


def _waits(plan: Plan) -> Iterator[str]:
    """Name the inputs without an end that hold event time back for as long as they give no rows, and what waits for them."""
    for target, sources in meeting(plan).items():
        for name in sources:
            head = plan.stage_of(name).chain[0]
            assert isinstance(head.operator, Read)
            if head.operator.source.timed and head.operator.source.idle_advice:
                yield f"{target} waits for {head.name} while it gives no rows{head.operator.source.idle_advice}"


def _guarantees(graph: Graph, plan: Plan) -> Iterator[str]:
    """Describe the guarantee of each source and sink, the resulting guarantee of each sink, and the operators that may drop records."""
    nodes = graph.ordered()
    for node in nodes:
        if isinstance(node.operator, (Source, Sink)):
            yield f"{node.name}: {node.operator.guarantee}"
    for sink in nodes:
        if isinstance(sink.operator, Sink):
            above = _above(graph, sink)
            sources = [node for node in above if isinstance(node.operator, Source)]
            ends = [node.operator.guarantee for node in (*sources, sink) if isinstance(node.operator, (Source, Sink))]
            promise = next((end for end in ends if not end.startswith(EXACTLY_ONCE)), EXACTLY_ONCE).partition(" (")[0]
            left_out = [node.name for node in above if isinstance(node.operator, FunctionOperator) and node.operator.on_error != "stop"]
            but = f", but for the records that {', '.join(left_out)} may refuse" if left_out else ""
            yield f"end to end, {', '.join(node.name for node in sources)} to {sink.name}: {promise}{but}"
    if not plan.tasks[0].settings.save_state:
        yield "without CheckpointConfig(dir=...) a job that loses something fails; what was committed by then stays, once"


def _reserved(plan: Plan, config: WorkerConfig) -> str:
    """Describe the resources that the job's workers reserve."""
    named, here = (_amounts(plan, config.on_cluster(named=named).reserved) for named in (True, False))
    if config.cpus is None:
        return f"{named or 'no CPUs'} reserved on a Ray cluster that you name (WorkerConfig(cpus=...)), {here or 'none'} on this machine"
    return f"{named or 'no CPUs'} reserved on Ray"


def _amounts(plan: Plan, cpus: float) -> str:
    """Describe the sum of what all workers reserve, if each reserves `cpus` whose operator names none."""
    total: Counter[str] = Counter()
    for stage in plan.stages:
        total.update({name: amount * stage.parallelism for name, amount in stage.resources.amounts(cpus).items()})
    return described(total)


def _above(graph: Graph, node: Node) -> list[Node]:
    """List the nodes whose records can reach this one, in the order of the flow."""
    reached = {node.id}
    for above in reversed(graph.ordered()):
        if above.id in reached:
            reached.update(edge.node for edge in above.inputs)
    return [above for above in graph.ordered() if above.id in reached and above is not node]


def _describe(node: Node, plan: Plan) -> str:
    if isinstance(node.operator, Source):
        return plan.sources[node.name].describe()
    if isinstance(node.operator, Sink):
        return ""
    return node.operator.describe()
