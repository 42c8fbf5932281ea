"""No module imports itself by way of others, not in a function and not for the type checker either."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

import pytest
from module_imports import LAYERS, imports, sources

CHECKED = ("state", "engine", "balancer", "scheduler", "connectors", "actors")


def cycles(graph: Mapping[str, Iterable[str]]) -> list[frozenset[str]]:
    """The largest sets of modules that all import each other, directly or not."""
    reached = {module: _reachable(graph, module) for module in graph}
    found = {frozenset(m for m in reached[module] if module in reached[m]) for module in graph if module in reached[module]}
    return sorted(found, key=sorted)


def _reachable(graph: Mapping[str, Iterable[str]], start: str) -> set[str]:
    reached: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        module = waiting.pop()
        if module not in reached:
            reached.add(module)
            waiting += graph[module]
    return reached


def module_graph() -> dict[str, set[str]]:
    """For each module of the project, those that it imports."""
    files = {".".join(name).removesuffix(".__init__"): (path, name) for layer in LAYERS for path, name in sources(layer)}
    graph = {}
    for module, (path, name) in files.items():
        found = {imported for _, imported in imports(ast.parse(path.read_text()), name)}
        graph[module] = {f if f in files else f.rpartition(".")[0] for f in found} & files.keys() - {module}
    return graph


GRAPH = module_graph()


@pytest.mark.parametrize("layer", CHECKED)
def test_layer_has_no_import_cycle(layer):
    inside = {module: others for module, others in GRAPH.items() if module.startswith(f"evenflow.{layer}.")}
    closed = {module: [other for other in others if other in inside] for module, others in inside.items()}
    assert cycles(closed) == []


def test_a_cycle_is_found_whatever_leads_into_it_and_out_of_it():
    graph = {"a": ["b"], "b": ["c"], "c": ["d", "b"], "d": [], "e": ["e"]}
    assert cycles(graph) == [frozenset("bc"), frozenset("e")]


def test_imports_of_names_in_functions_and_for_type_checkers_all_count():
    assert "evenflow.engine.errors" in GRAPH["evenflow.engine.task.core"], "from ..errors import ProtocolError"
    assert "evenflow.stream" in GRAPH["evenflow.dataflow"]
    assert "evenflow.dataflow" in GRAPH["evenflow.transformations"], "if TYPE_CHECKING"
    assert len(GRAPH) > 200
