"""Messages of strangers to a worker's sockets are rejected, counted if they arrive, and change nothing."""

from __future__ import annotations

import random
import resource
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import ray
import zmq
from patience import patience
from watching import actor, socket_folders, until

import evenflow as ef
from evenflow.actors.channels.gatekeeper import USER
from evenflow.actors.channels.headers import pack

GARBAGE = [
    [b""],
    [b"\xc1"],
    [b"\x80\x04\x95K\x01."],
    [b"\x00" * 5000],
    [pack(("kind", 0, 0, 0))],
    [pack((1, 0, 0, 0, 10**15))],
    [pack((0, 0, 0, 0, 1)), b"body", b"times", b"schema", b"more", b"and more"],
    [pack((99, -1, -1, -1))],
]

FLOOD = """
import resource, socket, sys
path, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
held = []
for number in range(count):
    family, address = [(socket.AF_UNIX, path), (socket.AF_INET, ("127.0.0.1", port))][number % 2]
    stranger = socket.socket(family)
    stranger.connect(address)
    stranger.send(bytes.fromhex("ff00000000000000007f")[: number % 11] or b"?")  # a ZMTP greeting that stops somewhere
    held.append(stranger)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("besieged") / "out"


@pytest.fixture(scope="module")
def job(cluster, out):
    """Run the job that one test after the other attacks."""
    flow = ef.Dataflow("besieged")
    flow.read(ef.generate(rate=2000, every="50ms", keys=10)).key_by("key").aggregate(n=ef.count()).write(ef.write_parquet(out))
    job = flow.run(config=ef.JobConfig(metrics=ef.MetricsConfig(window="100ms")))
    yield job
    job.cancel()
    job.wait("60s")


def test_malformed_messages_of_a_peer_are_refused_and_counted_and_the_job_goes_on(job, folder):
    paths = list(socket_folders(folder)[0].iterdir())
    assert len(paths) == 2
    password = on_worker(job, "generate-0", lambda worker: worker._service.security.password)
    with zmq.Context() as context:
        for path in paths:
            with context.socket(zmq.DEALER) as stranger:
                stranger.linger = 5000
                stranger.plain_username, stranger.plain_password = USER, password
                stranger.connect(f"ipc://{path}")
                for frames in GARBAGE:
                    stranger.send_multipart(frames)
        until(lambda: [f.refused_messages for f in job.metrics()] == [len(GARBAGE)] * 2, "all are counted")
    for path in paths:
        babble(socket.AF_UNIX, str(path))
    for port in ports_of(job, "generate-0") + ports_of(job, "aggregate-0"):
        babble(socket.AF_INET, ("127.0.0.1", port))
    goes_on(job)
    assert all(f.refused_messages >= len(GARBAGE) for f in job.metrics())


def test_ten_thousand_connections_that_say_nothing_do_not_stop_the_job(job, out):
    path = on_worker(job, "aggregate-0", lambda worker: worker._run().address.ipc.removeprefix("ipc://"))
    (port,) = ports_of(job, "aggregate-0")
    most = on_worker(job, "aggregate-0", lambda _: resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    command = [sys.executable, "-c", FLOOD, path, str(port), str(min(10_000, most // 2))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as flood:
        assert flood.stdout.readline() == "held\n"
        goes_on(job)
        job.stop(drain=True)
        job.wait("60s")
    rows = []
    check = ef.Dataflow("check")
    check.read(ef.read_parquet(out)).key_by("key").aggregate(n=ef.max("n"), emit="final").write(ef.to_list(rows))
    check.run(runtime="local").wait()
    assert sum(row["n"] for row in rows) == job.metrics()[0].rows_in


def babble(family, address):
    """Send bytes that are no ZeroMQ, and a valid greeting followed by nonsense."""
    greeting = b"\xff" + b"\x00" * 8 + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\x00") + b"\x00" * 32
    noise = random.Random(5).randbytes(1000)
    for message in (noise, b"GET / HTTP/1.1\r\n\r\n", greeting + noise):
        with socket.socket(family) as stranger:
            stranger.settimeout(patience(60))
            stranger.connect(address)
            stranger.sendall(message)


def goes_on(job):
    taken = sum(figures.rows_in for figures in job.metrics() if figures.operator == "generate")
    until(lambda: job.metrics()[0].rows_in > taken, "more rows have come")


def ports_of(job, worker):
    """Return the TCP ports on loopback of a worker's process that speak ZeroMQ: Ray's own listen elsewhere."""

    def look(worker):
        inodes = {str(fd.readlink()) for fd in Path("/proc/self/fd").iterdir() if fd.is_socket()}
        lines = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
        return [int(line[1].split(":")[1], 16) for line in lines if line[3] == "0A" and f"socket:[{line[9]}]" in inodes]

    ports = on_worker(job, worker, look)
    assert len(ports) == 1
    return ports


def on_worker(job, worker, ask):
    return ray.get(actor(job, worker).__ray_call__.remote(ask), timeout=patience(60))
