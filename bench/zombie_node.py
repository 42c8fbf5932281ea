"""A node of a cluster on this machine that is cut off: Ray declares it lost, and the job's processes on it still run.

Ray ends an actor that it declares lost, unless it can't reach its node. So this stops a node's raylet together with the processes, and
wakes only the processes, beside their replacements.
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
LOOK_SECONDS = 0.1
LOST_SECONDS, BACK_SECONDS = 90.0, 60.0
"""The time in which Ray must notice that a node is lost, and restart the coordinator."""

SPEAK_SECONDS = 8.0
"""How long the processes of a lost node go on at most."""

AGAIN_SECONDS = 20.0
"""After which a node that did not start, on a machine that is too busy, is tried again."""

TRIES = 8
"""How often the coordinator is killed at most to have it on the node: Ray puts it on either one by chance."""


class ZombieNode:
    """The second node of a cluster; after each loss `tend` adds another. This process must be connected to the first.

    `say` hears of a node that did not start.
    """

    def __init__(self, cluster: Cluster, job: str, say: Callable[[str], object]) -> None:
        self._say, self._again = say, 0.0
        self._cluster, self._coordinator = cluster, f"{job}/coordinator"
        self._mine = f"{job}/"
        self._node: Any = None

    def tend(self) -> None:
        """Add the node if there is none: to be called by the main thread, since Ray sets a signal handler for each."""
        if self._node is None and time.monotonic() > self._again:
            try:
                self._node = self._cluster.add_node(**NODE)
            except Exception as error:  # noqa: BLE001 -- Ray raises no narrower one for a node that didn't start in time
                self._again = time.monotonic() + AGAIN_SECONDS
                self._say(f"no second node for now, it is tried again: {error}")

    def lose(self) -> str | None:
        """Stop the job's processes on the node, with the coordinator, until another coordinator runs; then wake them.

        Says who it was, and when the old coordinator left. None if Ray never put it there.
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
        left = _within(SPEAK_SECONDS, lambda: not _runs(coordinator))
        spoke = time.monotonic() - begun
        others = sum(_runs(process) for process in victims.values())
        self._cluster.remove_node(self._node, allow_graceful=False)
        self._node = None
        end = f"it left after {spoke:.1f} s" if left else f"it was still there after {spoke:.0f} s"
        names = ", ".join(sorted(name.removeprefix(self._mine) for name in victims))
        return f"{names} slept for {slept:.0f} s and woke beside another coordinator; {end}, with {others} more processes awake"

    def _has_coordinator(self) -> bool:
        """Restart the coordinator until it is on the node. Returns whether it is."""
        for _ in range(TRIES):
            try:
                process, node = where(self._coordinator)
                if node == self._node.node_id:
                    return True
                os.kill(process, signal.SIGKILL)
            except (ValueError, RayError):
                time.sleep(LOOK_SECONDS)
        return False

    def _processes(self) -> dict[str, int]:
        """Those of the job on the node, by name."""
        found = {}
        for actor in ray.util.list_named_actors(all_namespaces=True):
            if actor["namespace"] == NAMESPACE and actor["name"].startswith(self._mine):
                with suppress(ValueError, RayError):
                    process, node = where(actor["name"])
                    if node == self._node.node_id:
                        found[actor["name"]] = process
        return found

    def _sleep(self, victims: dict[str, int]) -> float:
        """Stop them until another coordinator is there; for how many seconds that was."""
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
    """Whether the condition becomes true within `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_SECONDS)
    return True


def _runs(process: int) -> bool:
    """Whether it is there, and not only its entry, which its stopped parent does not take away."""
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
