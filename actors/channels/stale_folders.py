"""Removal of socket folders that remain when a driver, and with it every process of its job, was killed.

A folder is removed only if it is provably dead: it is this user's, it is not new, and no process listens on any socket in it.
"""

from __future__ import annotations

import os
import socket
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path

YOUNG = 60.0
"""The age in seconds below which a file is kept: a new socket refuses connections too before it listens."""


def sweep_stale_folders(temporary: Path | None = None) -> None:
    """Remove the dead socket folders of this user in `temporary`, by default the temporary folder of this process."""
    for folder in (temporary or Path(tempfile.gettempdir())).glob(f"evenflow-{os.getuid()}-*"):
        with suppress(OSError):  # another worker sweeps too, or the folder is in use
            _sweep(folder)


def _sweep(folder: Path) -> None:
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or _young(found):
        return
    sockets = list(folder.iterdir())
    if all(_dead(path) for path in sockets):
        for path in sockets:
            path.unlink(missing_ok=True)
        folder.rmdir()


def _dead(path: Path) -> bool:
    found = path.lstat()
    if not stat.S_ISSOCK(found.st_mode) or _young(found):
        return False
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return True
    return False


def _young(found: os.stat_result) -> bool:
    return time.time() - found.st_mtime < YOUNG
