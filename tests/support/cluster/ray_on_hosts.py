"""A program, not a test: a Ray cluster on several hosts. It begins in the hall, and becomes `several_hosts.py` on the first host."""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
from pathlib import Path

from hosts import Host, enter

PATIENT = 'until "$@" >&2; do sleep 1; done'
"""A retry of Ray's start, which gives up if the head isn't there yet, or slow."""

HEALTH = {
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "2000",
    "RAY_health_check_failure_threshold": "3",
}
"""Settings with which a silent host counts as lost after some seconds, not after half a minute."""


def tls(certificate: Path) -> dict[str, str]:
    """Return the settings that encrypt Ray's own messages; the certificate is also the authority."""
    return {
        "RAY_USE_TLS": "1",
        "RAY_TLS_SERVER_CERT": str(certificate),
        "RAY_TLS_SERVER_KEY": str(certificate.with_suffix(".key")),
        "RAY_TLS_CA_CERT": str(certificate),
    }


def main(folder: Path, count: int, certificate: Path | None = None) -> None:
    private = folder / "private"
    private.mkdir()
    environment = os.environ | HEALTH | (tls(certificate) if certificate is not None else {})
    environment |= {"TMPDIR": str(private), "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    start = ["sh", "-c", PATIENT, "start", str(Path(sys.executable).with_name("ray")), "start", "--block"]
    start += ["--num-cpus=4", f"--object-store-memory={80 << 20}", "--include-log-monitor=false"]
    hosts = []
    for number in range(1, count + 1):
        head = ["--head", "--port=6379", "--include-dashboard=false", f"--temp-dir={private}/ray"]
        role = head if number == 1 else ["--address=10.77.0.1:6379"]
        command = [*start, f"--node-ip-address=10.77.0.{number}", *role]
        hosts.append(Host(number, private, command, environment, mortal=number > 1))
    for host in hosts:
        host.wire()
    bridge = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    os.environ.update(environment)
    pids = {host.address: host.pid for host in hosts}
    program = Path(__file__).with_name("several_hosts.py")
    enter(hosts[0].pid, [sys.executable, str(program), str(folder), str(bridge.fileno()), json.dumps(pids)], bridge.fileno())


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), *map(Path, sys.argv[3:]))
