"""Sampling of a worker's process: py-spy, run on the process's own node, samples its Python stacks for some seconds.

Stacks are names of threads, functions and files with lines. py-spy reads no values, so they contain no rows.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError

from ...engine.errors import RequestError
from .process import NAMESPACE

RATE = 100
"""Samples per second. py-spy stops the process for each of them."""

MOST_BYTES = 1 << 19
"""The most bytes of stacks that are sent: the most frequent ones."""

STARTS = 15.0
"""Seconds that py-spy may take in addition: it reads the symbols of the process's libraries first."""

NOT_THERE = "py-spy is not installed on the worker's node: `pip install py-spy` there, into the environment of Ray or on its PATH"

NOT_ALLOWED = (
    "py-spy may not trace the worker's process: its user needs the right to trace processes on that node "
    "(root, the capability SYS_PTRACE of a container, or `sysctl kernel.yama.ptrace_scope=0`)"
)


def sample_stacks(process: str, seconds: int) -> str:
    """Return the stacks of the worker process of that name in Ray, one per line: frames from the outermost on, joined by `;`,
    then their count.

    Raises RequestError if the process was lost, or py-spy is missing, may not trace or takes too long.
    """
    try:
        actor: Any = ray.get_actor(process, namespace=NAMESPACE)
        stacks, problem = ray.get(actor.__ray_call__.remote(own_stacks, seconds), timeout=seconds + STARTS + 5)
    except (ValueError, RayError) as error:
        raise RequestError(f"the worker's process can't be reached:  {str(error).splitlines()[0]}") from error
    if problem:
        raise RequestError(problem)
    return str(stacks)


def own_stacks(_actor: object, seconds: int) -> tuple[str, str]:
    """Return the stacks of the process that runs this, called for its actor, or why there are none."""
    program = shutil.which("py-spy", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""))))
    if program is None:
        return "", NOT_THERE
    with tempfile.TemporaryDirectory(prefix="evenflow-") as folder:
        file = Path(folder) / "stacks"
        command = [program, "record", "--pid", str(os.getpid()), "--duration", str(seconds), "--rate", str(RATE)]
        command += ["--format", "raw", "--threads", "--function", "--output", str(file)]
        try:
            ran = subprocess.run(  # noqa: S603 -- py-spy, with numbers and a file of ours
                command, capture_output=True, text=True, timeout=seconds + STARTS, check=False
            )
        except subprocess.TimeoutExpired:
            return "", f"py-spy has not finished within {seconds + STARTS:g} s"
        if ran.returncode or not file.is_file():
            return "", why_failed(ran.stderr)
        return most_seen(file.read_text(errors="replace"), MOST_BYTES), ""


def why_failed(said: str) -> str:
    """Return why py-spy failed, by its output."""
    if "permission denied" in said.lower() or "operation not permitted" in said.lower():
        return NOT_ALLOWED
    return f"py-spy has failed: {next(iter(said.splitlines()), 'without output')}"


def most_seen(stacks: str, most: int) -> str:
    r"""Return the most frequent stacks, as many as fit into `most` characters.

    >>> most_seen("main;read 2\nmain;count 10\nmain 1", 28)
    'main;count 10\nmain;read 2'
    """
    kept: list[str] = []
    for line in sorted(stacks.splitlines(), key=lambda line: -int(line.rpartition(" ")[2])):
        most -= len(line) + 1
        if most < 0:
            break
        kept.append(line)
    return "\n".join(kept)
