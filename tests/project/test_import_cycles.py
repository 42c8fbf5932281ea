"""No module imports itself by way of others, and no folder either, not in a function and not for the type checker."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

import pytest
from module_imports import LAYERS, ROOT, imports, sources

FILES = ("state", "engine", "balancer", "scheduler", "connectors", "actors", "evenflow", "bench")
"""Layers whose files have no import circles."""

FOLDERS = ("state", "balancer", "connectors", "actors", "evenflow", "bench")
"""Layers whose folders have no import circles."""


def cycles(graph: Mapping[str, Iterable[str]]) -> list[frozenset[str]]:
    """Return the largest sets of modules that all import each other, directly or not."""
    reached = {node: _reachable(graph, node) for node in graph}
    found = {frozenset(m for m in reached[node] if node in reached[m]) for node in graph if node in reached[node]}
    return sorted(found, key=sorted)


def _reachable(graph: Mapping[str, Iterable[str]], start: str) -> set[str]:
    reached: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        node = waiting.pop()
        if node not in reached:
            reached.add(node)
            waiting += graph[node]
    return reached


@cache
def module_graph() -> dict[str, set[str]]:
    """Return the imports of each module of the project."""
    files = {".".join(name).removesuffix(".__init__"): (path, name) for layer in LAYERS for path, name in sources(layer)}
    graph = {}
    for module, (path, name) in files.items():
        found = {imported for _, imported in imports(ast.parse(path.read_text()), name)}
        graph[module] = {f if f in files else f.rpartition(".")[0] for f in found} & files.keys() - {module}
    return graph


def within(graph: Mapping[str, Iterable[str]], layer: str) -> dict[str, list[str]]:
    """Return the modules of a layer, each with the modules of the layer that it imports."""
    inside = {module for module in graph if layer_of(module) == layer}
    return {module: [other for other in graph[module] if other in inside] for module in inside}


def layer_of(module: str) -> str:
    first = module.split(".")[1] if "." in module else ""
    return first if first in LAYERS else "evenflow"


def folder_cycles(graph: Mapping[str, Iterable[str]]) -> Iterator[frozenset[str]]:
    """Yield the cycles among the files and folders of each folder; a folder imports what any module in it imports."""
    folders = {module.rpartition(".")[0] for module in graph}
    folders |= {".".join(folder.split(".")[:end]) for folder in folders for end in range(1, folder.count(".") + 2)}
    for folder in sorted(folders):
        children: dict[str, set[str]] = {}
        for module, others in graph.items():
            child = _child(folder, module)
            if child is not None:
                named = {_child(folder, other) for other in others}
                children.setdefault(child, set()).update(other for other in named if other not in (None, child))
        yield from cycles({child: [other for other in others if other in children] for child, others in children.items()})


def _child(folder: str, module: str) -> str | None:
    """Return the file or folder in `folder` that has the module, None if it is elsewhere."""
    if module == folder:
        return f"{folder}.__init__"
    inside = f"{folder}."
    return inside + module.removeprefix(inside).partition(".")[0] if module.startswith(inside) else None


@pytest.mark.parametrize("layer", FILES)
def test_layer_has_no_import_cycle(layer):
    assert cycles(within(module_graph(), layer)) == []


@pytest.mark.parametrize("layer", FOLDERS)
def test_layer_has_no_import_cycle_of_folders(layer):
    assert list(folder_cycles(within(module_graph(), layer))) == []


def test_a_cycle_is_found_whatever_leads_into_it_and_out_of_it():
    graph = {"a": ["b"], "b": ["c"], "c": ["d", "b"], "d": [], "e": ["e"]}
    assert cycles(graph) == [frozenset("bc"), frozenset("e")]


def test_folders_have_a_cycle_even_if_their_files_have_none():
    graph = {"top.a.one": ["top.b.one"], "top.a.two": [], "top.b.one": [], "top.b.two": ["top.a.two"], "top.c": ["top.a.one"]}
    assert cycles(graph) == []
    assert list(folder_cycles(graph)) == [{"top.a", "top.b"}]


def test_a_cycle_is_found_in_the_folder_in_which_it_is():
    graph = {"top.a.x.one": ["top.a.y"], "top.a.y": ["top.a.x.two"], "top.a.x.two": [], "top.b": ["top.a"], "top.a": []}
    assert list(folder_cycles(graph)) == [{"top.a.x", "top.a.y"}]


def test_imports_of_names_in_functions_and_for_type_checkers_all_count():
    assert "evenflow.engine.errors" in module_graph()["evenflow.engine.task.core"], "from ..errors import ProtocolError"
    assert "evenflow.stream" in module_graph()["evenflow.dataflow"]
    assert "evenflow.views.polling" in module_graph()["evenflow.job"], "if TYPE_CHECKING"
    assert len(module_graph()) > 200


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["tests", "examples", ".ci"])
def test_modules_that_tests_and_programs_import_exist(folder):
    missing = [
        f"{path.relative_to(ROOT)}:{line} imports {imported}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, imported in imports(ast.parse(path.read_text()), ("program",))
        if imported.startswith("evenflow.") and imported not in module_graph() and imported.rpartition(".")[0] not in module_graph()
    ]
    assert missing == []
