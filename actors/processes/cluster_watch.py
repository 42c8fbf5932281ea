"""Watches which nodes come and go, for one job: nodes that Ray drains, such as spot machines and pods that Kubernetes evicts, and nodes
that Ray's autoscaler starts, while the job waits for room.

The questions to Ray have a thread of their own, because one may wait for a head that is busy.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .ray_internals import draining_nodes, nodes_are_starting

LOOK_SECONDS = 1.0
"""Seconds between two questions to Ray."""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NodesInChange:
    """`draining`: the nodes that Ray drains, with the time at which it ends them, in seconds since the epoch, None if it isn't told.
    `starting`: its autoscaler starts nodes.
    """

    draining: Mapping[str, float | None] = field(default_factory=dict)
    starting: bool = False


def watch_cluster(job: str, told: Callable[[NodesInChange], None], waits: Callable[[], bool], over: Callable[[], bool]) -> None:
    """Start a thread that tells what changes until `over()`. It asks for nodes that start only while the job `waits()` for room."""
    threading.Thread(target=_watch, args=(job, told, waits, over), name=f"{job}/nodes", daemon=True).start()


def _watch(job: str, told: Callable[[NodesInChange], None], waits: Callable[[], bool], over: Callable[[], bool]) -> None:
    known: NodesInChange | None = None
    while not over():
        try:
            found = NodesInChange(draining_nodes(), waits() and nodes_are_starting())
        except Exception:  # noqa: BLE001 -- a head that doesn't answer tells of no change
            _LOG.debug("job `%s`: Ray does not say which nodes it drains", job, exc_info=True)
        else:
            if found != known:
                known = found
                told(found)
        time.sleep(LOOK_SECONDS)
