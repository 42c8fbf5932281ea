"""A Kafka broker to measure and test with: one that runs already, or a process that listens on loopback and stores nothing."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from tempfile import TemporaryDirectory

from ..harness.errors import BenchmarkError

TRIES = 5
"""Another process may take the port that was free a moment ago."""

END_SECONDS = 10.0


@contextmanager
def kafka_broker(bootstrap: str | None = None) -> Iterator[str]:
    """Yield the address of a broker that is ready: `bootstrap`, or if that is None one that ends with the block.

    The latter is noida-db, a single process that keeps topics in memory. Raises BenchmarkError if that isn't installed or doesn't start.
    """
    if bootstrap:
        yield bootstrap
        return
    for _ in range(TRIES):
        with TemporaryDirectory(prefix="kafka-broker-") as folder, own_broker(free_port(), folder) as (address, ready):
            if ready:
                yield address
                return
    raise BenchmarkError(f"no Kafka broker could be started in {TRIES} tries")


@contextmanager
def own_broker(port: int, folder: str) -> Iterator[tuple[str, bool]]:
    """Start a broker; yields its address, and True if it is ready. It saves its topics in `folder` when the block ends."""
    command = [_program(), "start", "--only", "kafka", "--kafka-port", str(port), "--data-dir", folder]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603 -- an installed program, and our own words
    try:
        yield f"127.0.0.1:{port}", _is_ready(f"127.0.0.1:{port}", process)
    finally:
        process.terminate()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port() -> int:
    """Return a free port of loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _program() -> str:
    try:
        return str(files("noida_db") / "noida-db")
    except ModuleNotFoundError as error:
        raise BenchmarkError("starting a Kafka broker needs noida-db: pip install noida-db, or name a broker with --bootstrap") from error


def _is_ready(bootstrap: str, process: subprocess.Popen[bytes]) -> bool:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    while process.poll() is None:
        try:
            admin.list_topics(timeout=1)
        except KafkaException:
            continue
        return True
    return False
