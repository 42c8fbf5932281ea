"""Ray clusters that only tests use: Ray's own processes do no more than a job needs of them.

Workers run at the normal priority, as on a cluster that evenflow starts. Ray starts none before a job asks for it, collects no metrics of
its own, and doesn't look often for new log files to print in the driver. What needs no pandas is tested without it on Ray, and with it
elsewhere.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ray
from patience import patience
from ray._private import services

RAY_SETTINGS = {
    "RAY_worker_niceness": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_prestart_worker_first_driver": "0",
    "RAY_enable_metrics_collection": "0",
    "LOG_NAME_UPDATE_INTERVAL_S": "86400",
    "EVENFLOW_WORKER_CPUS": "0",
    "EVENFLOW_WORKER_START_TIMEOUT": f"{patience(120):.0f}s",
}
"""Environment variables of the process that starts a cluster, which has two CPUs, and of the programs that use it by its address."""

WITHOUT_PANDAS = os.pathsep.join(filter(None, (str(Path(__file__).with_name("without_pandas")), os.environ.get("PYTHONPATH"))))
"""The PYTHONPATH of processes that have no pandas."""

OF_PROGRAMS = os.pathsep.join((WITHOUT_PANDAS, str(Path(__file__).parent)))
"""The PYTHONPATH of the tests' programs, which share `patience.py` with them."""

START_SECONDS = patience(60)
"""Time for a cluster to start. Ray itself gives up after 30 s."""


def start_ray(**options: Any) -> Any:
    """Start a cluster for this process, without a dashboard, which costs seconds; return what `ray.init` returns."""
    import pytest  # programs that start their clusters otherwise need not load it

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", WITHOUT_PANDAS)
        patch.setenv("RAY_LOG_MONITOR_MANY_FILES_THRESHOLD", "0")  # else it looks for files ten times a second, whatever the interval
        patch.setattr(services, "get_node", _patiently(services.get_node))
        return ray.init("local", num_cpus=2, include_dashboard=False, object_store_memory=100 << 20, log_to_driver=False, **options)


def _patiently(get_node: Callable[..., Any]) -> Callable[..., Any]:
    """Return `get_node` with retries until the node has started."""

    def found(*of: Any) -> Any:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                return get_node(*of)
            except RuntimeError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    return found
