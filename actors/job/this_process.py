"""This process as the owner of a run, and checks if other owners on this machine are alive.

>>> from dataclasses import replace
>>> me = this_owner()
>>> runs(me), runs(replace(me, born="another boot's"))
(True, False)
"""

from __future__ import annotations

import os
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

from ...scheduler.record.restoring.run_claim import Owner

_BOOT, _NAMESPACE = "/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"
_BORN = 19
"""The index of the start time in /proc/PID/stat, after the name in parentheses."""


def this_owner(*, detached: bool = False) -> Owner:
    """Return this process as an owner. On systems without /proc, host and process id identify it."""
    boot = namespace = ""
    with suppress(OSError):
        boot = Path(_BOOT).read_text("ascii").strip()
        namespace = os.readlink(_NAMESPACE)  # noqa: PTH115 -- it names no path
    host, pid = socket.gethostname(), os.getpid()
    return Owner(host, f"{host} {boot} {namespace}", pid, _born(pid), time.time(), _cluster(), detached)


def runs(owner: Owner) -> bool:
    """True if a process of this machine is the owner's."""
    try:
        os.kill(owner.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return _born(owner.pid) == owner.born


def _born(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[_BORN]
    except (OSError, IndexError):
        return ""


def _cluster() -> str:
    """Return the address of the Ray cluster that this process has joined or will join; empty if it starts its own."""
    ray = sys.modules.get("ray")
    if ray is not None and ray.is_initialized():
        return str(ray.get_runtime_context().gcs_address)
    return os.environ.get("RAY_ADDRESS", "")
