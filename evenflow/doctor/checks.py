"""Judges facts about a machine, which `probes.py` gathers.

>>> python((3, 10, 4), "Linux").todo
'install Python 3.11 or newer, and create an environment with it'
>>> open_files(1024, 1048576).state
'advice'
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from packaging.requirements import Requirement

from ..actors.channels.socket_folder import MAX_PATH_BYTES

State = Literal["ok", "advice", "missing"]

LEAST_PYTHON = (3, 11)
LEAST_JAVA = 17

FEW_FILES, ENOUGH_FILES = 256, 8192
"""Open files of a process: Ray doesn't start with fewer than the first; a worker with many channels and files needs the second."""

LITTLE_MEMORY = 1 << 30
"""Bytes of /dev/shm below which Ray puts its object store into files."""

LITTLE_SPACE = 1 << 30
"""Bytes of free space in the temporary folder, where Ray writes its logs and spills objects."""

SOCKET_BYTES = len("/evenflow-4294967295-0123456789abcdef/0123456789abcdef.sock")
"""Bytes that evenflow appends to the temporary folder's path."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check of `what`: the fact (`found`), and the remedy (`todo`), empty if it is ok. `advice`: jobs run, but slower or
    with fewer features; `missing`: jobs can't run.
    """

    what: str
    state: State
    found: str
    todo: str = ""


def ok(what: str, found: str) -> Finding:
    """Report that a requirement is met."""
    return Finding(what, "ok", found)


def advice(what: str, found: str, todo: str) -> Finding:
    """Report a problem with which jobs run."""
    return Finding(what, "advice", found, todo)


def missing(what: str, found: str, todo: str) -> Finding:
    """Report a problem with which no job runs."""
    return Finding(what, "missing", found, todo)


def python(version: Sequence[int], system: str) -> Finding:
    """Check the running interpreter."""
    found = f"{'.'.join(map(str, version))} on {system}"
    if tuple(version) < LEAST_PYTHON:
        return missing("Python", found, "install Python 3.11 or newer, and create an environment with it")
    if system != "Linux":
        return advice("Python", found, "evenflow is tested on Linux only")
    return ok("Python", found)


def java(version: str | None, home: str | None) -> Finding:
    """Check Java for Spark. `version`: the output of `java -version`, None if there is no such program. `home`: JAVA_HOME."""
    where = f"JAVA_HOME={home}" if home else "on the PATH"
    install = "for Spark install Java 17 or newer (sudo apt-get install openjdk-17-jre-headless), and let JAVA_HOME name it"
    if version is None:
        return advice("Java", f"none {where}", install)
    match = re.search(r'version "(\d+)(?:\.(\d+))?', version)
    if match is None:
        return advice("Java", f"{version.splitlines()[0] if version else 'no answer'} ({where})", install)
    major = int(match[2] or 0) if match[1] == "1" else int(match[1])
    if major < LEAST_JAVA:
        return advice("Java", f"{major} ({where})", install)
    return ok("Java", f"{major} ({where})")


def dependencies(needed: Iterable[str], installed: Mapping[str, str | None]) -> Finding:
    """Check the dependencies. `needed`: requirements as packages state them; `installed`: the version of each name, None if it is not
    installed.
    """
    wrong = []
    for text in needed:
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        version = installed.get(requirement.name)
        if version is None:
            wrong.append(f"no {requirement.name}")
        elif not requirement.specifier.contains(version, prereleases=True):
            wrong.append(f"{requirement.name} {version} is not {requirement.specifier}")
    if wrong:
        return missing("dependencies", "; ".join(wrong), "pip install --upgrade evenflow, in this environment")
    return ok("dependencies", f"{len(installed)} packages")


def tested_versions(constraints: str, installed: Mapping[str, str | None]) -> Finding:
    """Compare versions with the text of constraints.txt, with which the tests last ran."""
    tested = dict(line.split("==", 1) for line in constraints.split() if "==" in line)
    others = [
        f"{name} {version} (tested: {tested[name]})"
        for name, version in installed.items()
        if version and tested.get(name, version) != version
    ]
    if others:
        return advice("tested versions", ", ".join(others), "pip install -c constraints.txt evenflow, if something fails")
    return ok("tested versions", "those of constraints.txt")


def loopback(problem: str | None) -> Finding:
    """Check sockets on 127.0.0.1. `problem`: why one can't be opened and reached, None if it can."""
    if problem is not None:
        return missing("loopback sockets", problem, "allow TCP on 127.0.0.1: a sandbox, a firewall or a container without `lo` forbids it")
    return ok("loopback sockets", "127.0.0.1 answers")


def temporary_folder(path: str, free: int, problem: str | None) -> Finding:
    """Check the folder of sockets, logs and spilled objects. `problem`: why no Unix socket can be created there."""
    what, length = "temporary folder", len(path.encode()) + SOCKET_BYTES
    if length > MAX_PATH_BYTES:
        return missing(
            what, f"{path} makes socket paths of {length} bytes", f"set TMPDIR to a path of at most {MAX_PATH_BYTES - SOCKET_BYTES} bytes"
        )
    if problem is not None:
        return missing(what, f"{path}: {problem}", "set TMPDIR to a folder on a local disk that you can write to")
    if free < LITTLE_SPACE:
        return advice(
            what, f"{path} has {_size(free)} left", "free some space, or set TMPDIR: Ray writes its logs there, and spills objects"
        )
    return ok(what, f"{path}, {_size(free)} left")


def open_files(soft: int, hard: int) -> Finding:
    """Check the limits of this process, -1 for none."""
    found = f"{soft if soft >= 0 else 'any number'}, at most {hard if hard >= 0 else 'any number'}"
    if soft < 0 or soft >= ENOUGH_FILES:
        return ok("open files", found)
    todo = (
        f"ulimit -n {ENOUGH_FILES}, in the shell that starts Ray and your program"
        if hard < 0 or hard >= ENOUGH_FILES
        else (f"let the administrator raise the hard limit (LimitNOFILE, /etc/security/limits.conf) to {ENOUGH_FILES} or more")
    )
    return missing("open files", found, todo) if soft < FEW_FILES else advice("open files", found, todo)


def shared_memory(size: int | None, free: int) -> Finding:
    """Check /dev/shm by its size in bytes, None without it."""
    todo = "give it 1 GiB or more (docker run --shm-size=2g; a volume of medium Memory in Kubernetes): Ray keeps its objects there"
    if size is None:
        return advice("/dev/shm", "missing", todo)
    found = f"{_size(size)}, {_size(free)} free"
    return advice("/dev/shm", found, todo) if min(size, free) < LITTLE_MEMORY else ok("/dev/shm", found)


def ray_cluster(address: str | None, heads: Sequence[str], problem: str | None, *, token: bool) -> Finding:
    """Check the Ray cluster. `address`: RAY_ADDRESS. `heads`: clusters on this machine. `problem`: why the cluster can't be joined."""
    if problem is not None:
        return missing("Ray cluster", problem, "follow this advice, or unset RAY_ADDRESS to start a cluster on this machine")
    if not address and len(heads) > 1:
        todo = f"set RAY_ADDRESS, for example RAY_ADDRESS={heads[0]}: commands don't guess between clusters"
        return advice("Ray cluster", f"{len(heads)} on this machine: {', '.join(heads)}", todo)
    found = address or next(iter(heads), None)
    if found is None:
        return ok("Ray cluster", "none: a job starts one on this machine")
    if not token:
        return advice(
            "Ray cluster",
            f"{found} answers, without a token",
            "start it with RAY_AUTH_MODE=token: anyone who reaches its port can run code as you",
        )
    return ok("Ray cluster", f"{found} answers, with a token")


def ray_starts(seconds: float | None, problem: str | None) -> Finding:
    """Check that Ray starts. `problem`: why no cluster could be started on this machine, None if it took `seconds`."""
    if problem is not None:
        return missing("Ray starts", problem, "see the logs in the folder `ray/session_latest/logs` of the temporary folder")
    return ok("Ray starts", f"in {seconds:.1f} s")


def shared_folder(path: str, problem: str | None) -> Finding:
    """Check a folder for checkpoints or Spark's exchange, which every node must see."""
    if problem is not None:
        return missing(f"folder {path}", problem, "give a folder that this user can write to; every node must see it at the same path")
    return ok(f"folder {path}", "files can be written, renamed and read; try it on every node")


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB"
