"""A node of a cluster on this machine that is cut off: Ray declares it lost, and the job's processes on it still run.

Ray ends an actor that it declares lost, unless it can't reach its node. So this stops a node's raylet together with the processes, and
wakes only the processes, while their replacements run.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psutil
import ray
from ray.cluster_utils import Cluster
from ray.exceptions import RayError

from evenflow.actors.processes.process import NAMESPACE
from evenflow.testing.chaos.sleepers import where

HEALTH = {"health_check_period_ms": 1_000, "health_check_timeout_ms": 3_000, "health_check_failure_threshold": 5}
"""Ray's settings for how soon a node that doesn't answer is lost: a quarter of a minute, on a machine that may be busy."""

NODE: dict[str, Any] = {"num_cpus": 2, "object_store_memory": 80 << 20}
POLL_SECONDS = 0.1
LOST_SECONDS, BACK_SECONDS = 90.0, 60.0
"""The time in which Ray must notice that a node is lost, and restart the coordinator."""

AWAKE_SECONDS = 8.0
"""The time in which the processes of a lost node should end after they wake."""

RETRY_SECONDS = 20.0
"""The time after which another node is tried if one did not start, on a machine that is too busy."""

TRIES = 8
"""Most kills of the coordinator to have it on the node: Ray chooses one of the two by chance."""


class ZombieNode:
    """The second node of a cluster; after each loss `tend` adds another. This process must be connected to the first."""

    def __init__(self, cluster: Cluster, job: str, say: Callable[[str], object]) -> None:
        self._say, self._retry_at = say, 0.0
        self._cluster, self._coordinator = cluster, f"{job}/coordinator"
        self._prefix = f"{job}/"
        self._node: Any = None

    def tend(self) -> None:
        """Add the node if there is none. Call it in the main thread, since Ray sets a signal handler for each node."""
        if self._node is None and time.monotonic() > self._retry_at:
            try:
                self._node = self._cluster.add_node(**NODE)
            except Exception as error:  # noqa: BLE001 -- Ray raises no narrower one for a node that didn't start in time
                self._retry_at = time.monotonic() + RETRY_SECONDS
                self._say(f"the second node did not start, and is tried again later: {error}")

    def lose(self) -> str | None:
        """Stop the job's processes on the node, with the coordinator, until another coordinator runs; then wake them.

        Returns the names of the processes, and when the old coordinator ended; None if Ray never put it there.
        """
        if self._node is None or not self._has_coordinator():
            return None
        victims = self._processes()
        coordinator = victims.get(self._coordinator)
        if coordinator is None:
            return None
        slept = self._sleep(victims)
        begun = time.monotonic()
        for process in victims.values():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)
        ended = _within(AWAKE_SECONDS, lambda: not _runs(coordinator))
        awake = time.monotonic() - begun
        others = sum(_runs(process) for process in victims.values())
        self._cluster.remove_node(self._node, allow_graceful=False)
        self._node = None
        end = f"it ended after {awake:.1f} s" if ended else f"it still ran after {awake:.0f} s"
        names = ", ".join(sorted(name.removeprefix(self._prefix) for name in victims))
        return f"{names} slept for {slept:.0f} s and woke when another coordinator ran; {end}, with {others} more processes awake"

    def _has_coordinator(self) -> bool:
        """Restart the coordinator until it is on the node. Returns False if it never is."""
        for _ in range(TRIES):
            try:
                process, node = where(self._coordinator)
                if node == self._node.node_id:
                    return True
                os.kill(process, signal.SIGKILL)
            except (ValueError, RayError):
                time.sleep(POLL_SECONDS)
        return False

    def _processes(self) -> dict[str, int]:
        found = {}
        for actor in ray.util.list_named_actors(all_namespaces=True):
            if actor["namespace"] == NAMESPACE and actor["name"].startswith(self._prefix):
                with suppress(ValueError, RayError):
                    process, node = where(actor["name"])
                    if node == self._node.node_id:
                        found[actor["name"]] = process
        return found

    def _sleep(self, victims: dict[str, int]) -> float:
        """Stop the processes until another coordinator runs; returns for how many seconds."""
        begun = time.monotonic()
        for process in (self._node.all_processes["raylet"][0].process.pid, *victims.values()):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGSTOP)
        if _within(LOST_SECONDS, lambda: self._node.node_id not in self._alive()):
            _within(BACK_SECONDS, self._another_coordinator)
        return time.monotonic() - begun

    def _alive(self) -> set[str]:
        return {node["NodeID"] for node in ray.nodes() if node["Alive"]}  # type: ignore[no-untyped-call]

    def _another_coordinator(self) -> bool:
        try:
            _, node = where(self._coordinator)
        except (ValueError, RayError):
            return False
        return bool(node != self._node.node_id)


def _within(seconds: float, condition: Callable[[], bool]) -> bool:
    """Wait until the condition is true; returns False after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def _runs(process: int) -> bool:
    """Return True if the process runs. An ended process stays a zombie while its parent is stopped."""
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
