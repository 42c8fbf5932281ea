"""Imports never point up, and modules that decide do no I/O: they read no clock, start no thread and open no socket."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from module_imports import LAYERS, ROOT, full_name, imports, local_names, sources

PURE = frozenset({"state", "engine", "balancer", "scheduler"})
OUTSIDE_WORLD = frozenset({
    "_thread", "asyncio", "concurrent", "http", "multiprocessing", "pyspark", "queue", "ray", "sched", "select", "selectors", "signal",
    "socket", "socketserver", "ssl", "subprocess", "threading", "time", "zmq",
})  # fmt: skip
INSIDE = {
    ("evenflow", "engine", "functions", "event_loop"): frozenset({"asyncio"}),
    ("evenflow", "state", "backends", "page_reads"): frozenset({"concurrent"}),
}
"""Exceptional imports of modules below `actors/`, which do all their work within one event: users' coroutines run in their worker's
thread, and threads wait for the disk together.
"""

ONLY_IN = {
    "lmdb": frozenset({"state"}),
    "ray": frozenset({"actors", "evenflow", "bench"}),
    "zmq": frozenset({"actors", "evenflow"}),
    "pyspark": frozenset({"connectors", "bench"}),
    "rich": frozenset({"evenflow", "bench"}),
}
HOMES = {
    "ray._private": ("evenflow", "actors", "processes", "ray_internals"),
    "valkey": ("evenflow", "state", "backends", "server_client"),
}
"""Imports that only one module may have."""

CLOCK_CALLS = frozenset({
    "datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today", "datetime.date.today", "os.times",
    "pandas.Timestamp.now", "pandas.Timestamp.today",
})  # fmt: skip

CLOCKS_AND_THREADS = frozenset({"queue", "threading", "time"})
SHELLS = {
    "background_work": "runs work of operators in threads",
    "clocks": "the clocks of jobs and tasks",
    "cluster": "starts a job's coordinator and waits for it",
    "cluster_watch": "asks in a thread which nodes Ray drains and starts",
    "coordinator": "the process of the coordinator",
    "deployment": "waits for processes",
    "driver_workers": "keeps processes for a while",
    "fair_lock": "lets threads in one after another",
    "gatekeeper": "ZeroMQ asks for passwords in a thread",
    "heartbeat": "gives signs of life in a thread",
    "job_storage": "copies savepoints in a thread",
    "local": "the thread of a local job",
    "metrics_http": "answers Prometheus in threads",
    "outbox": "notes when batches left, for the limit of what is in flight",
    "pings": "asks processes whether they are there",
    "placement": "waits for nodes",
    "process": "waits for processes",
    "prometheus": "is read in threads of its own",
    "ray_workers": "deploys workers in threads",
    "run_queue": "reads what the system counted for a thread",
    "running_code": "reads for how long a thread has been in one call",
    "spares": "keeps processes warm for a while",
    "stale_folders": "removes folders that are old",
    "start_watch": "looks in a thread what a start waits for",
    "starting": "waits for a sign of life of another process",
    "state_writer": "writes checkpoints in a thread",
    "storage_thread": "writes manifests and commits in a thread",
    "take_over": "waits for a store in a thread",
    "task_run": "the thread of a task",
    "this_process": "says when this process claimed a run",
    "tracing": "sends a job's last spans in a thread",
    "transport": "sockets with time-outs",
    "waker": "wakes a thread from another",
    "worker": "the process of workers",
    "worker_pool": "waits for processes, and is asked by several threads",
}
"""Modules of `actors/` that carry out decisions of others, and the reason why they need clocks or threads."""


def layer_of(imported: str) -> str | None:
    """Return the layer that an import reaches, None for other packages."""
    root, _, rest = imported.partition(".")
    if root != "evenflow":
        return None
    first = rest.partition(".")[0]
    return first if first in LAYERS else "evenflow"


def upward_imports(layer: str, found: list[tuple[int, str]]) -> Iterator[str]:
    for line, imported in found:
        reached = layer_of(imported)
        if reached is not None and LAYERS.index(reached) > LAYERS.index(layer):
            yield f"{line}: imports {imported}, but {layer} is below {reached} ({' <- '.join(LAYERS)})"


def misplaced_imports(layer: str, module: tuple[str, ...], found: list[tuple[int, str]]) -> Iterator[str]:
    for line, imported in found:
        package = imported.partition(".")[0]
        if package in ONLY_IN and layer not in ONLY_IN[package]:
            yield f"{line}: imports {imported}, but {package} is imported in {' and '.join(sorted(ONLY_IN[package]))} only"
        elif package in OUTSIDE_WORLD and layer in PURE and package not in INSIDE.get(module, ()):
            yield f"{line}: imports {imported}, but {layer} decides without I/O: time, threads and sockets belong to actors"


def strays(module: tuple[str, ...], found: list[tuple[int, str]]) -> Iterator[str]:
    for line, imported in found:
        for package, home in HOMES.items():
            if f"{imported}.".startswith(f"{package}.") and module != home:
                yield f"{line}: imports {imported}, but {package} is imported in {'.'.join(home)} only"


def hidden_inputs(layer: str, tree: ast.AST, module: tuple[str, ...], found: list[tuple[int, str]]) -> Iterator[str]:
    """Yield uses of the wall clock and of the process-wide random generator, which make a decision unrepeatable."""
    if layer not in PURE:
        return
    for line, imported in found:
        if imported.startswith("random.") and imported not in {"random.Random", "random.SystemRandom"}:
            yield f"{line}: imports {imported}, but {layer} takes randomness passed in: a random.Random with a seed"
    names = local_names(tree, module)
    for node in ast.walk(tree):
        used = full_name(node, names) if isinstance(node, ast.Attribute) else None
        if used is None:
            continue
        if used.startswith("random.") and used.count(".") == 1 and used != "random.Random":
            yield f"{node.lineno}: uses {used}, but {layer} takes randomness passed in: a random.Random with a seed"
        if used in CLOCK_CALLS:
            yield f"{node.lineno}: uses {used}, but {layer} takes time passed in"


def broken_rules(source: str, layer: str, module: tuple[str, ...]) -> list[str]:
    tree = ast.parse(source)
    found = list(imports(tree, module))
    return [
        *upward_imports(layer, found),
        *misplaced_imports(layer, module, found),
        *strays(module, found),
        *hidden_inputs(layer, tree, module, found),
    ]


def clocks_and_threads(source: str, module: tuple[str, ...]) -> set[str]:
    """Return the modules for clocks and threads that it imports."""
    return {imported.partition(".")[0] for _, imported in imports(ast.parse(source), module)} & CLOCKS_AND_THREADS


def foreign_imports(folder: str) -> Iterator[str]:
    """Yield the imports in a folder of `evenflow/` from its other folders, or from libraries that draw, serve or run."""
    for path, module in sources("evenflow"):
        if module[1] == folder:
            for line, imported in imports(ast.parse(path.read_text()), module):
                upper = layer_of(imported) in {"actors", "evenflow"} and not imported.startswith(f"evenflow.{folder}.")
                if upper or imported.partition(".")[0] in {"aiohttp", "ray", "rich"}:
                    yield f"{path.relative_to(ROOT)}:{line}: imports {imported}"


def test_the_view_model_knows_neither_a_jobs_handle_nor_how_it_is_shown():
    assert list(foreign_imports("views")) == []
    assert any("evenflow.views.history" in line for line in foreign_imports("terminal")), "folders above import the model"


@pytest.mark.parametrize("layer", LAYERS)
def test_layer_keeps_the_import_rules(layer):
    broken = [
        f"{path.relative_to(ROOT)}:{rule}" for path, module in sources(layer) for rule in broken_rules(path.read_text(), layer, module)
    ]
    assert not broken, "\n".join(broken)


def test_only_shells_among_the_actors_have_clocks_and_threads():
    having = {path.stem for path, module in sources("actors") if clocks_and_threads(path.read_text(), module)}
    assert having == SHELLS.keys()


@pytest.mark.parametrize(
    ("layer", "source", "rule"),
    [
        pytest.param("engine", "from ..actors.worker import Worker", "engine is below actors", id="relative import upwards"),
        pytest.param("engine", "from .. import actors", "engine is below actors", id="a whole package upwards"),
        pytest.param("state", "from ..engine.batch import Batch", "state is below engine", id="the bottom imports nothing"),
        pytest.param("actors", "import evenflow.bench.run", "actors is below bench", id="absolute import upwards"),
        pytest.param("connectors", "from evenflow import Dataflow", "connectors is below evenflow", id="the public package"),
        pytest.param("engine", "def f():\n    import time", "2: imports time", id="inside a function"),
        pytest.param("balancer", "from threading import Lock", "imports threading.Lock", id="a thread in a pure package"),
        pytest.param("connectors", "import ray.data", "ray is imported in actors and bench and evenflow only", id="ray in a connector"),
        pytest.param("actors", "from ray._private import services", "in evenflow.actors.processes.ray_internals only", id="inside Ray"),
        pytest.param("state", "import valkey", "in evenflow.state.backends.server_client only", id="a state server's client"),
        pytest.param("engine", "import lmdb", "lmdb is imported in state only", id="lmdb outside state"),
        pytest.param("actors", "from rich.table import Table", "rich is imported in bench and evenflow only", id="drawing below the top"),
        pytest.param("scheduler", "import random\nrandom.shuffle([])", "2: uses random.shuffle", id="the global generator"),
        pytest.param("scheduler", "from random import choice", "imports random.choice", id="the global generator by name"),
        pytest.param("scheduler", "from datetime import datetime\ndatetime.now()", "uses datetime.datetime.now", id="the wall clock"),
        pytest.param("engine", "import datetime as dt\ndt.datetime.now()", "2: uses datetime.datetime.now", id="the wall clock by alias"),
        pytest.param("engine", "from datetime import date as day\nday.today()", "2: uses datetime.date.today", id="the day by alias"),
        pytest.param("state", "from time import perf_counter as p", "imports time.perf_counter", id="a clock by alias"),
        pytest.param("state", "import queue", "imports queue", id="what threads share"),
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
