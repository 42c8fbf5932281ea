"""What a process loads: a start takes as long as its modules. Each list is read in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

SLOW = frozenset({
    "asyncio", "confluent_kafka", "deltalake", "duckdb", "fsspec", "grpc", "lmdb", "matplotlib", "numpy", "pandas", "prometheus_client",
    "psycopg", "pyarrow", "pyspark", "ray", "requests", "rich", "valkey", "zmq",
})  # fmt: skip
"""Packages that take long to load, or that few jobs need."""

WRITING_A_FLOW = "import evenflow as ef; ef.Dataflow, ef.JobConfig, ef.from_items, ef.generate, ef.read_parquet, ef.write_parquet, ef.count"
WORKER = "import evenflow.actors.processes.worker"
PARTS = ("evenflow.balancer", "evenflow.building", "evenflow.connectors", "evenflow.drawing", "evenflow.scheduler.scaling",
         "evenflow.scheduler.config", "evenflow.engine.plan.physical", "evenflow.dataflow", "evenflow.job")  # fmt: skip
"""Modules of ours that no worker needs before it knows its task."""


def loaded(code: str, first: str = "") -> set[str]:
    """The modules that `code` loads after `first`."""
    program = f"import sys\n{first}\nbefore = set(sys.modules)\n{code}\nprint(*(sys.modules.keys() - before))"
    return set(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split())


def packages(modules: set[str]) -> set[str]:
    return {module.partition(".")[0] for module in modules}


def test_the_package_alone_loads_nothing():
    modules = loaded("import evenflow")
    assert {module for module in modules if module.startswith("evenflow")} == {"evenflow"}
    assert not SLOW & packages(modules)


def test_writing_a_flow_needs_numpy_and_arrow():
    modules = loaded(WRITING_A_FLOW)
    assert SLOW & packages(modules) == {"numpy", "pyarrow"}


def test_a_worker_needs_numpy_arrow_and_zeromq_beside_what_ray_has_loaded():
    modules = loaded(WORKER, "import ray")
    assert SLOW & packages(modules) == {"numpy", "pyarrow", "zmq"}
    assert not [module for module in modules if module.startswith(PARTS)]


@pytest.mark.parametrize("module", ["coordinator", "driver_workers"])
def test_the_driver_and_the_coordinator_load_no_autoscaler_of_rays(module):
    assert not {
        name for name in loaded(f"import evenflow.actors.processes.{module}", "import ray") if name.startswith("ray.autoscaler._private")
    }
