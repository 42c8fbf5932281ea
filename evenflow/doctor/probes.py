"""Gathers facts about this machine for `checks.py`."""

from __future__ import annotations

import logging
import os
import platform
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from . import checks
from .checks import Finding

CONSTRAINTS = Path(__file__).resolve().parents[2] / "constraints.txt"
"""The tested versions; the file exists in a checkout only."""

PATIENCE = 10.0
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 -- looked at, not written to


def findings(folders: list[Path], *, start_ray: bool) -> Iterator[Finding]:
    """Yield the findings one after another. `folders`: folders to check for checkpoints. `start_ray`: also start a cluster."""
    probes: list[Callable[[], Finding]] = [
        _python,
        _dependencies,
        _java,
        _loopback,
        _temporary_folder,
        _open_files,
        _shared_memory,
        _ray_cluster,
    ]
    for probe in probes:
        yield probe()
    if CONSTRAINTS.exists():
        yield checks.tested_versions(CONSTRAINTS.read_text(encoding="utf-8"), _installed())
    for folder in folders:
        yield checks.shared_folder(str(folder), folder_problem(folder))
    if start_ray:
        yield _ray_starts()


def _python() -> Finding:
    return checks.python(sys.version_info[:3], platform.system())


def _requirements() -> list[str]:
    try:
        return [text for text in requires("evenflow") or [] if "extra ==" not in text]
    except PackageNotFoundError:  # a clone that was never installed
        return []


def _installed() -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for text in _requirements():
        name = re.split(r"[^A-Za-z0-9._-]", text, maxsplit=1)[0]
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def _dependencies() -> Finding:
    return checks.dependencies(_requirements(), _installed())


def _java() -> Finding:
    home = os.environ.get("JAVA_HOME")
    program = shutil.which(f"{home}/bin/java" if home else "java")
    if program is None:
        return checks.java(None, home)
    try:
        answer = subprocess.run([program, "-version"], capture_output=True, text=True, check=False, timeout=PATIENCE)  # noqa: S603 -- the user's own Java
    except (OSError, subprocess.TimeoutExpired) as error:
        return checks.java(str(error), home)
    return checks.java(answer.stderr + answer.stdout, home)


def _loopback() -> Finding:
    try:
        with closing(socket.create_server(("127.0.0.1", 0))) as server, closing(socket.create_connection(server.getsockname(), PATIENCE)):
            return checks.loopback(None)
    except OSError as error:
        return checks.loopback(str(error))


def _temporary_folder() -> Finding:
    folder = tempfile.gettempdir()
    return checks.temporary_folder(folder, shutil.disk_usage(folder).free, socket_problem(Path(folder)))


def socket_problem(folder: Path) -> str | None:
    """Return the reason why no Unix socket can be created in the folder, None if one can."""
    try:
        with tempfile.TemporaryDirectory(prefix="evenflow-doctor-", dir=folder) as name, closing(socket.socket(socket.AF_UNIX)) as server:
            server.bind(f"{name}/s")
    except OSError as error:
        return str(error)
    return None


def _open_files() -> Finding:
    return checks.open_files(*(-1 if limit == resource.RLIM_INFINITY else limit for limit in resource.getrlimit(resource.RLIMIT_NOFILE)))


def _shared_memory() -> Finding:
    if not SHARED_MEMORY.is_dir():
        return checks.shared_memory(None, 0)
    usage = shutil.disk_usage(SHARED_MEMORY)
    return checks.shared_memory(usage.total, usage.free)


def folder_problem(folder: Path) -> str | None:
    """Return the reason why the folder can't store checkpoints, None if it can: a file must be written, renamed onto another and read."""
    try:
        with tempfile.TemporaryDirectory(prefix=".evenflow-doctor-", dir=folder) as name:
            written, place = Path(name, "written"), Path(name, "place")
            place.write_bytes(b"before")
            written.write_bytes(b"after")
            written.replace(place)
            return None if place.read_bytes() == b"after" else "a renamed file does not have its content"
    except OSError as error:
        return str(error)


def _ray_cluster() -> Finding:
    from ..actors.driver.cluster_check import check_reachable
    from ..actors.processes.ray_internals import JOINING_LOG, heads_on_this_machine
    from ..engine.errors import ClusterError

    logging.getLogger(JOINING_LOG).setLevel(logging.ERROR)  # tokens are a finding of ours
    address = os.environ.get("RAY_ADDRESS")
    heads, problem = heads_on_this_machine(), None
    if address or len(heads) == 1:
        try:
            check_reachable(address or heads[0])
        except ClusterError as error:
            problem = str(error)
    return checks.ray_cluster(address, heads, problem, token=os.environ.get("RAY_AUTH_MODE") == "token")


def _ray_starts() -> Finding:
    """Start Ray in a process of its own, so that its cluster ends with it."""
    program = (
        "import ray; ray.init('local', include_dashboard=False, num_cpus=1, logging_level='ERROR'); ray.get(ray.put(1)); ray.shutdown()"
    )
    began = time.monotonic()
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
    try:
        done = subprocess.run(  # noqa: S603 -- this Python
            [sys.executable, "-W", "ignore", "-c", program],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        return checks.ray_starts(None, "Ray has not started within 120 s")
    if done.returncode:
        return checks.ray_starts(None, next(iter(done.stderr.strip().splitlines()[-1:]), f"exit code {done.returncode}"))
    return checks.ray_starts(time.monotonic() - began, None)
