"""Plans for people: as text, and as a Mermaid flowchart."""

from __future__ import annotations

from .engine.graph import Graph, Node
from .engine.operators.keyed import KeyedOperator
from .engine.plan import Plan
from .engine.sink import Sink
from .engine.source import Source


def explain(graph: Graph, plan: Plan) -> str:
    """The logical plan (an operator per line), the physical plan (a stage per line), where state lies, and the guarantees of the ends."""
    lines = [f"Dataflow {graph.name}", "", "Logical plan"]
    for node in graph.ordered():
        inputs = ", ".join(graph.nodes[e.node].name + ("" if e.port == "out" else f".{e.port}") for e in node.inputs)
        lines.append(f"  {node.name:<24} {'<- ' + inputs if inputs else 'source':<32} {_describe(node)}".rstrip())
    lines += ["", "Physical plan"]
    for stage in plan.stages:
        chain = " -> ".join(chained.name for chained in stage.chain)
        lines.append(f"  {stage.name} x {stage.parallelism}: {chain}")
        for output in stage.outputs:
            way = f"by hash of {', '.join(output.keys)}" if output.keys is not None else "forward"
            target = plan.stage_of(output.target)
            if output.keys is None and target.parallelism != stage.parallelism:
                way = "round robin"
            lines.append(f"    to {output.target} {way}, {stage.parallelism} x {target.parallelism} workers")
    keyed = [chained.name for stage in plan.stages for chained in stage.chain if isinstance(chained.operator, KeyedOperator)]
    if keyed:
        lines += ["", "State", *(f"  {name}: {plan.tasks[0].settings.state.describe()}" for name in keyed)]
    lines += ["", "Guarantees"]
    for node in graph.ordered():
        if isinstance(node.operator, (Source, Sink)):
            lines.append(f"  {node.name}: {node.operator.guarantee}")
    return "\n".join(lines)


def to_mermaid(graph: Graph) -> str:
    """The logical plan as a Mermaid flowchart; edges that partition say by which columns."""
    lines = ["flowchart LR"]
    for node in graph.ordered():
        shape = ('(["', '"])') if isinstance(node.operator, (Source, Sink)) else ('["', '"]')
        lines.append(f"    n{node.id}{shape[0]}{node.name}{shape[1]}")
    for node in graph.ordered():
        for edge in node.inputs:
            labels = [*([", ".join(node.keys)] if node.keys else []), *([edge.port] if edge.port != "out" else [])]
            arrow = f'-->|"{" ".join(labels)}"|' if labels else "-->"
            lines.append(f"    n{edge.node} {arrow} n{node.id}")
    return "\n".join(lines)


def _describe(node: Node) -> str:
    if isinstance(node.operator, (Source, Sink)):
        return ""
    return node.operator.describe()
