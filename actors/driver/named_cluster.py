"""Decides if the user names the Ray cluster to which this process is connected: workers reserve CPUs there by default.

Invariant: a cluster that this process has started, or that evenflow found on this machine without being told, is not named.
"""

from __future__ import annotations

import os

import ray
from ray.util.client import ray as ray_client

from ..processes.ray_internals import started_by_this_process

NO_NAMES = frozenset({"", "auto", "local"})
"""Values of RAY_ADDRESS that leave it to Ray which cluster to use."""

_found = set[str]()
"""The addresses of clusters that evenflow has chosen."""


def environment_names_cluster() -> bool:
    """Return True if RAY_ADDRESS has the address of a cluster, as in a program that `ray job submit` starts."""
    return os.environ.get("RAY_ADDRESS", "") not in NO_NAMES


def note_found(address: str) -> None:
    """Note that evenflow has chosen the cluster at this address, the one of its GCS."""
    _found.add(address)


def user_names_cluster() -> bool:
    """Return True if RAY_ADDRESS, or the user's own `ray.init(address)`, names the cluster to which this process is connected."""
    if ray_client.is_connected():  # type: ignore[no-untyped-call]
        return True
    if started_by_this_process():
        return False
    context = ray.get_runtime_context()
    by_init = context.worker.mode == ray.SCRIPT_MODE and context.gcs_address not in _found
    return environment_names_cluster() or by_init
