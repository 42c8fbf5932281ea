"""Watches which nodes Ray drains, for one job: nodes that are about to go, such as spot machines and pods that Kubernetes evicts.

The questions to Ray have a thread of their own, because one may wait for a head that is busy.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from .ray_internals import draining_nodes

LOOK_SECONDS = 1.0
"""Seconds between two questions to Ray."""

_LOG = logging.getLogger(__name__)


def watch_drains(job: str, told: Callable[[frozenset[str]], None], over: Callable[[], bool]) -> None:
    """Start a thread that tells the nodes that Ray drains, whenever they change, until `over()`."""
    threading.Thread(target=_watch, args=(job, told, over), name=f"{job}/drains", daemon=True).start()


def _watch(job: str, told: Callable[[frozenset[str]], None], over: Callable[[], bool]) -> None:
    known = frozenset[str]()
    while not over():
        try:
            draining = draining_nodes()
        except Exception:  # noqa: BLE001 -- a head that doesn't answer tells of no drain
            _LOG.debug("job `%s`: Ray does not say which nodes it drains", job, exc_info=True)
            draining = known
        if draining != known:
            known = draining
            told(known)
        time.sleep(LOOK_SECONDS)
