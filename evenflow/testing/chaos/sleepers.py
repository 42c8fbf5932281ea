"""Stops processes of a job, and wakes them once they have been declared lost: zombies, on any node of the cluster."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ...actors.processes.process import NAMESPACE

ANSWER_SECONDS = 30.0
"""The most seconds that a process takes to identify itself, or to be stopped."""


class Sleeper:
    """The process of the actor `name`, which is stopped from now on. Raises ValueError or RayError if it has ended."""

    def __init__(self, name: str) -> None:
        self.name = name
        actor: Any = ray.get_actor(name, namespace=NAMESPACE)
        self._process, node = where(name)
        placed = NodeAffinitySchedulingStrategy(node, soft=False)
        hand: Any = ray.remote(_Hand)
        self._hand = hand.options(num_cpus=0, scheduling_strategy=placed).remote()
        ray.get(self._hand.send.remote(self._process, int(signal.SIGSTOP)), timeout=ANSWER_SECONDS)
        self._answer = actor.__ray_call__.remote(_where)

    @property
    def lost(self) -> bool:
        """True if it was declared lost: a call of it fails while it is still stopped."""
        return bool(ray.wait([self._answer], timeout=0)[0])

    def wake(self) -> None:
        """Let it continue."""
        with suppress(RayError):
            ray.get(self._hand.send.remote(self._process, int(signal.SIGCONT)), timeout=ANSWER_SECONDS)
        ray.kill(self._hand)


def where(name: str) -> tuple[int, str]:
    """Return the process id and the node of an actor. Raises ValueError or RayError if it has ended or doesn't answer."""
    actor: Any = ray.get_actor(name, namespace=NAMESPACE)
    found: tuple[int, str] = ray.get(actor.__ray_call__.remote(_where), timeout=ANSWER_SECONDS)
    return found


class _Hand:
    """An actor on the sleeper's node: a stopped process can't wake itself."""

    def send(self, process: int, sign: int) -> None:
        """Send a process a signal, unless it has ended meanwhile."""
        with suppress(ProcessLookupError):
            os.kill(process, sign)


def _where(_: Any) -> tuple[int, str]:
    return os.getpid(), ray.get_runtime_context().get_node_id()
