"""Several Ray nodes on this machine: a cluster that nodes join and leave."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self, TypeVar

import ray
from ray.cluster_utils import Cluster

from ...harness.errors import BenchmarkError
from ...harness.jobs import until

STORE = 80 << 20
"""Bytes of a node's object store."""

WAIT = 60.0
"""Seconds in which a node must have joined."""

TRIES = 3
"""Attempts to start a node: Ray gives up after 30 s, which a busy machine may need."""

T = TypeVar("T")


class Nodes:
    """A context with a cluster of a head node without CPUs and of `count` nodes with `cpus` CPUs each, to which this process is connected.

    Its files are in a folder of its own, so that no other program on the machine connects to it by default.
    """

    def __init__(self, count: int, cpus: int) -> None:
        self._count, self._cpus = count, cpus

    def __enter__(self) -> Self:
        if ray.is_initialized():
            raise BenchmarkError("benchmark stela starts a Ray cluster of its own: run it in a process that is connected to none")
        self._folder = TemporaryDirectory(prefix="ef-", ignore_cleanup_errors=True)
        os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 -- Ray's spelling
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        os.environ["RAY_TMPDIR"] = self._folder.name
        head = {"num_cpus": 0, "object_store_memory": STORE, "include_dashboard": False, "include_log_monitor": False}
        self._cluster = _patiently(lambda: Cluster(initialize_head=True, head_node_args=head))
        try:
            for _ in range(self._count):
                _patiently(lambda: self._cluster.add_node(num_cpus=self._cpus, object_store_memory=STORE))
            ray.init(self._cluster.address, log_to_driver=False, logging_level=logging.ERROR)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        ray.shutdown()
        self._end()

    @property
    def head(self) -> str:
        """The head node."""
        head: Any = self._cluster.head_node
        found: str = head.node_id
        return found

    def add(self, cpus: int, resources: Mapping[str, float] | None = None) -> Any:
        """Add a node with this many CPUs and resources of its own; returns its handle for `remove`. Raises BenchmarkError if it does not
        join.
        """
        node = _patiently(lambda: self._cluster.add_node(num_cpus=cpus, object_store_memory=STORE, resources=dict(resources or {})))
        until(lambda: any(one["Alive"] and one["NodeID"] == node.node_id for one in ray.nodes()), "a new node has joined", WAIT)  # type: ignore[no-untyped-call]
        return node

    def remove(self, node: Any) -> None:
        """Remove a node on which nothing runs any more."""
        self._cluster.remove_node(node)

    def _end(self) -> None:
        self._cluster.shutdown()  # type: ignore[no-untyped-call]
        del os.environ["RAY_TMPDIR"]
        self._folder.cleanup()


def _patiently(start: Callable[[], T]) -> T:
    for _ in range(TRIES - 1):
        with suppress(Exception):  # Ray raises no narrower one for a node that didn't start in time
            return start()
    return start()
