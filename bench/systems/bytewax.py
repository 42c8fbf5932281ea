"""Bytewax in two processes of one worker each, on one cluster.

Decoding the files is outside the time, and the source gives batches of ready rows. Each worker's partition holds half of the keys, so that
a key's rows come in the files' order. The time is from the last worker's first batch to the last worker's end.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..task import Answer, Task, result_of_alerts

PROCESSES = 2
WAIT = 900.0


def run(task: Task) -> Iterator[Answer]:
    """T2 only."""
    for _ in range(task.repeat):
        shutil.rmtree(task.output, ignore_errors=True)
        Path(task.output).mkdir(parents=True)
        clocks = Path(task.output + "-clocks")
        shutil.rmtree(clocks, ignore_errors=True)
        clocks.mkdir()
        run_cluster(f"{__package__}.bytewax_flow:flow", {"EVENFLOW_BENCH_TASK": task.to_json(), "EVENFLOW_BENCH_CLOCKS": str(clocks)})
        begun = [float(path.read_text()) for path in clocks.glob("begin-*")]
        ended = [float(path.read_text()) for path in clocks.glob("end-*")]
        if len(begun) != PROCESSES or not ended:
            raise RuntimeError(
                f"Bytewax's workers noted {len(begun)} starts and {len(ended)} ends in {clocks}; expected {PROCESSES} of each"
            )
        yield Answer(max(ended) - max(begun), task.rows, result_of_alerts(task.output))


def run_cluster(flow: str, environment: Mapping[str, str]) -> None:
    """Run `module:name` in all processes, to its end. Raises RuntimeError if one fails."""
    addresses = ";".join(f"127.0.0.1:{port}" for port in free_ports(PROCESSES))
    workers = [
        subprocess.Popen([sys.executable, "-m", "bytewax.run", flow, "-i", str(index), "-a", addresses], env={**os.environ, **environment})  # noqa: S603 -- our own words
        for index in range(PROCESSES)
    ]
    deadline = time.monotonic() + WAIT
    try:
        codes = [worker.wait(max(1.0, deadline - time.monotonic())) for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    if any(codes):
        raise RuntimeError(f"Bytewax ended with codes {codes}")


def free_ports(count: int) -> list[int]:
    """Free ports of loopback."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()
