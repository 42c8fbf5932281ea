"""Bytewax in two processes of one worker each, on one cluster."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping

PROCESSES = 2
WAIT = 900.0

Workers = list[subprocess.Popen[bytes]]


def start_cluster(flow: str, environment: Mapping[str, str], *options: str) -> Workers:
    """Start the flow `module:name` in all processes."""
    addresses = ";".join(f"127.0.0.1:{port}" for port in free_ports(PROCESSES))
    command = [sys.executable, "-m", "bytewax.run", flow, "-a", addresses, *options]
    return [
        subprocess.Popen([*command, "-i", str(index)], env={**os.environ, **environment})  # noqa: S603 -- our own words
        for index in range(PROCESSES)
    ]


def run_cluster(flow: str, environment: Mapping[str, str]) -> None:
    """Run the flow to its end. Raises RuntimeError if a process fails."""
    workers = start_cluster(flow, environment)
    deadline = time.monotonic() + WAIT
    try:
        codes = [worker.wait(max(1.0, deadline - time.monotonic())) for worker in workers]
    finally:
        kill(workers)
    if any(codes):
        raise RuntimeError(f"Bytewax ended with codes {codes}")


def kill(workers: Workers) -> None:
    """Kill all processes of a cluster."""
    for worker in workers:
        worker.kill()
    for worker in workers:
        worker.wait(30)


def free_ports(count: int) -> list[int]:
    """Return free ports of loopback."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()
