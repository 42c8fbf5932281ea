"""A node of a Ray cluster as a process of its own, with its own environment."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from patience import patience

SECONDS = 120.0


@contextmanager
def ray_node(log: Path, parameters: Sequence[str], variables: Mapping[str, str]) -> Iterator[None]:
    """Run `ray start --block` with these parameters until the block ends, and then end the node by SIGTERM."""
    own = ["--node-ip-address=127.0.0.1", f"--object-store-memory={100 << 20}"]
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", *parameters, *own]
    with log.open("wb") as out, subprocess.Popen(command, env=dict(variables), stdout=out, stderr=out) as process:
        try:
            yield
        finally:
            process.terminate()
            process.wait(patience(SECONDS))
