"""A Ray cluster with an autoscaler (version 2) that starts and ends fake nodes on this machine.

`ray.cluster_utils.AutoscalingCluster` does the same, but begins and ends with `ray stop --force`, which ends every cluster of the user, and
needs a file that Ray's package lacks. This one has a folder and ports of its own.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from patience import patience
from ray._private.services import get_node_ip_address
from ray.autoscaler._private.fake_multi_node.node_provider import FAKE_HEAD_NODE_ID
from ray_settings import RAY_SETTINGS
from watching import PATIENCE, processes_of, until

STORE = 80 << 20
"""Bytes of a node's object store."""

TRIES = 3

STARTED = b"Ray runtime started"
"""The line of a head that other processes can use."""

COMMANDS = (
    "initialization_commands", "setup_commands", "head_setup_commands", "worker_setup_commands",
    "head_start_ray_commands", "worker_start_ray_commands", "cluster_synced_files",
)  # fmt: skip
"""Settings of autoscalers that start machines, which Ray expects of all."""


def config(address: str, cpus: int, most: int, idle_minutes: float) -> dict[str, object]:
    """Return the settings of an autoscaler that starts up to `most` nodes of `cpus` CPUs."""
    provider = "ray.autoscaler._private.fake_multi_node.node_provider.FakeMultiNodeProvider"
    node = {"resources": {"CPU": cpus, "object_store_memory": STORE}, "node_config": {}, "min_workers": 0, "max_workers": most}
    return {
        "cluster_name": "fake",
        "max_workers": most,
        "idle_timeout_minutes": idle_minutes,
        "upscaling_speed": 100.0,
        "provider": {
            "type": "external",
            "module": provider,
            "disable_node_updaters": True,
            "disable_launch_config_check": True,
            "launch_multiple": True,
            "head_node_id": FAKE_HEAD_NODE_ID,
            "gcs_address": address,
        },
        **{key: dict[str, str]() for key in ("auth", "docker", "file_mounts", "head_node", "worker_nodes")},
        **{key: list[str]() for key in COMMANDS},
        "available_node_types": {
            "ray.head.default": {"resources": {"CPU": 0}, "node_config": {}, "max_workers": 0},
            "ray.worker.fake": node,
        },
        "head_node_type": "ray.head.default",
    }


@contextmanager
def autoscaled(folder: Path, cpus: int = 2, most: int = 4, idle_minutes: float = 0.5) -> Iterator[dict[str, str]]:
    """Run a head without CPUs and its autoscaler; yield the environment of programs that use the cluster."""
    folder.mkdir()
    gcs = free_port()
    address = f"{get_node_ip_address()}:{gcs}"
    (folder / "autoscaler.json").write_text(json.dumps(config(address, cpus, most, idle_minutes)))
    programs = {name: value for name, value in os.environ.items() if name not in {"RAY_ADDRESS", "EVENFLOW_WORKER_CPUS"}}
    programs |= {name: value for name, value in RAY_SETTINGS.items() if name != "EVENFLOW_WORKER_CPUS"} | {"TMPDIR": str(folder)}
    programs |= {"RAY_SCHEDULER_EVENTS": "0", "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16)}
    fake = {"RAY_FAKE_CLUSTER": "1", "AUTOSCALER_UPDATE_INTERVAL_S": "1", "RAY_enable_autoscaler_v2": "1"}
    programs |= {"RAY_gcs_rpc_server_reconnect_timeout_s": "20"}  # seconds for which processes outlive a lost head; Ray's default is 60
    fake |= {"RAY_CLOUD_INSTANCE_ID": FAKE_HEAD_NODE_ID, "RAY_OVERRIDE_NODE_ID_FOR_TESTING": FAKE_HEAD_NODE_ID}
    options = [f"--port={gcs}", "--num-cpus=0", f"--object-store-memory={STORE}", "--include-dashboard=false"]
    options += [f"--autoscaling-config={folder / 'autoscaler.json'}", f"--temp-dir={folder / 'ray'}", "--include-log-monitor=false"]
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", *options]
    head = _started(command, programs | fake, folder / "head.log")
    try:
        yield programs | {"RAY_ADDRESS": address}
    finally:
        head.terminate()
        with suppress(subprocess.TimeoutExpired):
            head.wait(patience(30))
        head.kill()
        head.wait()
        for pid in processes_of(folder):  # the autoscaler leaves its nodes behind
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    until(lambda: not processes_of(folder), f"no process is left: {processes_of(folder)}")


def lose_head(folder: Path) -> None:
    """Kill the head's server, without which there is no cluster; its other processes end then."""
    (server,) = [pid for pid, command in processes_of(folder).items() if "gcs_server" in command.split()[0]]
    os.kill(server, signal.SIGKILL)


def _started(command: list[str], environment: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    """Return the process of a head that has started; Ray gives up after 30 s, which a busy machine may need."""
    for _ in range(TRIES):
        with log.open("wb") as output:
            head = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
        try:
            until(lambda head=head: head.poll() is not None or STARTED in log.read_bytes(), "the head is up", PATIENCE)
        except BaseException:
            head.kill()
            head.wait()
            raise
        if head.poll() is None:
            return head
    raise AssertionError(log.read_text()[-2000:])


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
