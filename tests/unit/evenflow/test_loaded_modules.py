"""Processes load few modules, because these decide how long a start takes. Each list is read in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SLOW = frozenset({
    "asyncio", "confluent_kafka", "deltalake", "duckdb", "fsspec", "grpc", "lmdb", "matplotlib", "numpy", "pandas", "prometheus_client",
    "psycopg", "pyarrow", "pyiceberg", "pyspark", "ray", "requests", "rich", "sqlglot", "valkey", "zmq",
})  # fmt: skip
"""Packages that take long to load, or that few jobs need."""

WRITING_A_FLOW = "import evenflow as ef; ef.Dataflow, ef.JobConfig, ef.from_items, ef.generate, ef.read_parquet, ef.write_parquet, ef.count"
PARTS = ("evenflow.balancer", "evenflow.building", "evenflow.connectors", "evenflow.scheduler.scaling",
         "evenflow.scheduler.configs.job", "evenflow.engine.plan.physical", "evenflow.terminal", "evenflow.views",
         "evenflow.dataflow", "evenflow.job")  # fmt: skip
"""Modules of ours that no worker needs before it knows its task."""


IN_TURN = """
import json, sys

found, before = [], set()
for code in sys.argv[1:]:
    exec(code)
    found.append(sorted(sys.modules.keys() - before))
    before = set(sys.modules)
print(json.dumps(found))
"""


def loaded(*codes: str) -> list[set[str]]:
    """Return the modules that each of these loads after those before it, in one process."""
    command = [sys.executable, "-c", IN_TURN, "0", *codes]
    _, *found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return [set(modules) for modules in found]


def packages(modules: set[str]) -> set[str]:
    return {module.partition(".")[0] for module in modules}


@pytest.mark.slow
def test_the_package_alone_loads_nothing_and_writing_a_flow_needs_numpy_and_arrow():
    alone, writing = loaded("import evenflow", WRITING_A_FLOW)
    assert {module for module in alone if module.startswith("evenflow")} == {"evenflow"}
    assert not SLOW & packages(alone)
    assert SLOW & packages(writing) == {"numpy", "pyarrow"}
    assert "evenflow.job" not in writing, "only a flow that runs has a handle of its job"


@pytest.mark.slow
def test_worker_adds_only_numpy_arrow_and_zeromq_to_ray_and_no_process_loads_its_autoscaler():
    worker_modules = "import evenflow.actors.processes.worker, evenflow.actors.task.task_run"
    _, worker, *others = loaded(
        "import ray", worker_modules, *(f"import evenflow.actors.{name}" for name in ("processes.coordinator", "driver.driver_workers"))
    )
    assert SLOW & packages(worker) == {"numpy", "pyarrow", "zmq"}
    assert not [module for module in worker if module.startswith(PARTS)]
    assert not [module for modules in (worker, *others) for module in modules if module.startswith("ray.autoscaler._private")]


@pytest.mark.slow
def test_a_process_with_a_handle_of_an_actor_loads_no_more_than_its_class():
    _, coordinators, workers = loaded(
        "import ray", *(f"import evenflow.actors.processes.{name}" for name in ("coordinator_actor", "worker"))
    )
    assert not [module for module in coordinators if module.startswith(("evenflow.engine", "evenflow.scheduler", "evenflow.actors.job"))]
    assert not [module for module in workers if module.startswith(("evenflow.actors.task", "evenflow.engine.task"))]
