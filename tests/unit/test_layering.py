"""Nothing imports upwards, and what decides does no I/O."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LAYERS = ("state", "engine", "balancer", "scheduler", "connectors", "actors", "evenflow", "bench")
PURE = frozenset({"state", "engine", "balancer", "scheduler"})
OUTSIDE_WORLD = frozenset({
    "asyncio", "concurrent", "multiprocessing", "pyspark", "ray", "selectors", "signal", "socket", "subprocess", "threading", "time", "zmq",
})  # fmt: skip
ONLY_IN = {
    "lmdb": frozenset({"state"}),
    "ray": frozenset({"actors", "evenflow", "bench"}),
    "zmq": frozenset({"actors", "evenflow"}),
    "pyspark": frozenset({"connectors", "bench"}),
    "rich": frozenset({"evenflow", "bench"}),
}
HOMES = {
    "ray._private": ("evenflow", "actors", "ray_internals"),
    "valkey": ("evenflow", "state", "backends", "server_client"),
}
"""What one module imports, and no other."""
CLOCK_CALLS = {"datetime": {"now", "utcnow", "today"}, "date": {"today"}}


def imports(tree: ast.AST, module: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of everything that is imported in `module` (its dotted name in parts, `__init__` included)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = (*module[: -node.level], *(node.module or "").split(".")) if node.level else tuple((node.module or "").split("."))
            path = ".".join(part for part in base if part)
            yield from ((node.lineno, f"{path}.{alias.name}") for alias in node.names)


def layer_of(imported: str) -> str | None:
    """The layer that an import reaches, None for what isn't ours."""
    root, _, rest = imported.partition(".")
    if root != "evenflow":
        return None
    first = rest.partition(".")[0]
    return first if first in LAYERS else "evenflow"


def upward_imports(layer: str, found: list[tuple[int, str]]) -> Iterator[str]:
    for line, imported in found:
        reached = layer_of(imported)
        if reached is not None and LAYERS.index(reached) > LAYERS.index(layer):
            yield f"{line}: imports {imported}, but {layer} lies below {reached} ({' <- '.join(LAYERS)})"


def misplaced_imports(layer: str, found: list[tuple[int, str]]) -> Iterator[str]:
    for line, imported in found:
        package = imported.partition(".")[0]
        if package in ONLY_IN and layer not in ONLY_IN[package]:
            yield f"{line}: imports {imported}, but {package} is imported in {' and '.join(sorted(ONLY_IN[package]))} only"
        elif package in OUTSIDE_WORLD and layer in PURE:
            yield f"{line}: imports {imported}, but {layer} decides without I/O: time, threads and sockets belong to actors"


def strays(module: tuple[str, ...], found: list[tuple[int, str]]) -> Iterator[str]:
    for line, imported in found:
        for package, home in HOMES.items():
            if f"{imported}.".startswith(f"{package}.") and module != home:
                yield f"{line}: imports {imported}, but {package} is imported in {'.'.join(home)} only"


def hidden_inputs(layer: str, tree: ast.AST, found: list[tuple[int, str]]) -> Iterator[str]:
    """Uses of the wall clock and of the process-wide random generator, which make a decision unrepeatable."""
    if layer not in PURE:
        return
    for line, imported in found:
        if imported.startswith("random.") and imported not in {"random.Random", "random.SystemRandom"}:
            yield f"{line}: imports {imported}, but {layer} takes randomness passed in: a random.Random with a seed"
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
            continue
        if node.value.id == "random" and node.attr != "Random":
            yield f"{node.lineno}: uses random.{node.attr}, but {layer} takes randomness passed in: a random.Random with a seed"
        if node.attr in CLOCK_CALLS.get(node.value.id, ()):
            yield f"{node.lineno}: uses {node.value.id}.{node.attr}, but {layer} takes time passed in"


def broken_rules(source: str, layer: str, module: tuple[str, ...]) -> list[str]:
    tree = ast.parse(source)
    found = list(imports(tree, module))
    return [
        *upward_imports(layer, found),
        *misplaced_imports(layer, found),
        *strays(module, found),
        *hidden_inputs(layer, tree, found),
    ]


def module_name(layer: str, path: Path) -> tuple[str, ...]:
    inside = path.relative_to(ROOT / layer).with_suffix("").parts
    return ("evenflow", *inside) if layer == "evenflow" else ("evenflow", layer, *inside)


@pytest.mark.parametrize("layer", LAYERS)
def test_layer_keeps_the_import_rules(layer):
    broken = [
        f"{path.relative_to(ROOT)}:{rule}"
        for path in sorted((ROOT / layer).rglob("*.py"))
        for rule in broken_rules(path.read_text(), layer, module_name(layer, path))
    ]
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize(
    ("layer", "source", "rule"),
    [
        pytest.param("engine", "from ..actors.worker import Worker", "engine lies below actors", id="relative import upwards"),
        pytest.param("engine", "from .. import actors", "engine lies below actors", id="a whole package upwards"),
        pytest.param("state", "from ..engine.batch import Batch", "state lies below engine", id="the bottom imports nothing"),
        pytest.param("actors", "import evenflow.bench.run", "actors lies below bench", id="absolute import upwards"),
        pytest.param("connectors", "from evenflow import Dataflow", "connectors lies below evenflow", id="the public package"),
        pytest.param("engine", "def f():\n    import time", "2: imports time", id="inside a function"),
        pytest.param("balancer", "from threading import Lock", "imports threading.Lock", id="a thread in a pure package"),
        pytest.param("connectors", "import ray.data", "ray is imported in actors and bench and evenflow only", id="ray in a connector"),
        pytest.param("actors", "from ray._private import services", "in evenflow.actors.ray_internals only", id="inside Ray"),
        pytest.param("state", "import valkey", "in evenflow.state.backends.server_client only", id="a state server's client"),
        pytest.param("engine", "import lmdb", "lmdb is imported in state only", id="lmdb outside state"),
        pytest.param("actors", "from rich.table import Table", "rich is imported in bench and evenflow only", id="drawing below the top"),
        pytest.param("scheduler", "import random\nrandom.shuffle([])", "2: uses random.shuffle", id="the global generator"),
        pytest.param("scheduler", "from random import choice", "imports random.choice", id="the global generator by name"),
        pytest.param("scheduler", "from datetime import datetime\ndatetime.now()", "uses datetime.now", id="the wall clock"),
    ],
)
def test_broken_rule_is_named(layer, source, rule):
    (broken,) = broken_rules(source, layer, ("evenflow", layer, "planted") if layer != "evenflow" else ("evenflow", "planted"))
    assert rule in broken


@pytest.mark.parametrize(
    ("layer", "source"),
    [
        ("engine", "from ..state.hashing import hash64\nfrom .batch import Batch\nimport datetime"),
        ("scheduler", "import random\nrandom.Random(7).shuffle([])"),
        ("connectors", "from pyspark.sql import SparkSession\nimport time"),
        ("actors", "import ray\nimport zmq\nimport threading"),
        ("bench", "import evenflow as ef\nfrom evenflow.engine.batch import Batch"),
    ],
)
def test_rule_abiding_imports_pass(layer, source):
    assert broken_rules(source, layer, ("evenflow", layer, "planted")) == []
