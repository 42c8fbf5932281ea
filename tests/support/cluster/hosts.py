"""Hosts on this machine, each with its own network, mounts and processes, for programs like `transports_on_hosts.py`.

They are namespaces without names, which the kernel removes after the last process in them has ended in any way.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import PIPE
from typing import NoReturn

from patience import patience

TOOLS = ("unshare", "nsenter", "mount", "ip")

_HALL = 'ip link add name hall type bridge && ip link set hall up && ip link set lo up && "$@"; exit $?'
"""The command that sets up the hall. A shell waits for the program, because a namespace's first process must reap its orphans."""

_HOST = (
    'mount -t tmpfs tmpfs "$0" && address=$1 && shift && echo made && read wired && '
    'ip link set lo up && ip address add "$address/24" dev eth0 && ip link set eth0 up && echo up && "$@" >&2; exit $?'
)

_NEW = ("unshare", "--net", "--mount")
_NEW_PROCESSES = ("--pid", "--fork", "--kill-child", "--mount-proc")


def impossible() -> str | None:
    """Return why there can't be hosts on this machine; None if there can."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        return f"{' and '.join(missing)} is missing: install util-linux and iproute2"
    tried = subprocess.run(in_hall(["true"]), check=False, capture_output=True, text=True, timeout=patience(60))
    return None if tried.returncode == 0 else f"this user may not make network and mount namespaces: {tried.stderr.strip()}"


def in_hall(command: Sequence[str]) -> list[str]:
    """Return the command that runs `command` in namespaces with a bridge, where hosts can be created; all processes end with it."""
    return [*_NEW, *_NEW_PROCESSES, "sh", "-c", _HALL, "hall", *command]


class Host:
    """A host, created in the hall. `command` runs on it, with its private folder `private`, at the address 10.77.0.`number`.

    `mortal`: it has its own processes, which end with the process `pid`; else it shares those of the hall.
    """

    def __init__(self, number: int, private: Path, command: Sequence[str], environment: Mapping[str, str], *, mortal: bool = True) -> None:
        self._number, self.address = number, f"10.77.0.{number}"
        new = [*_NEW, *(_NEW_PROCESSES if mortal else ()), "sh", "-c", _HOST, str(private), self.address, *command]
        self._process = subprocess.Popen(new, env=environment, stdin=PIPE, stdout=PIPE, stderr=sys.stderr, text=True)
        self.pid = self._process.pid

    def wire(self) -> None:
        """Plug it into the bridge."""
        self._expect("made")
        port = f"port{self._number}"
        for words in (f"add {port} type veth peer name eth0 netns {self.pid}", f"set {port} master hall", f"set {port} up"):
            subprocess.run(["ip", "link", *words.split()], check=True, timeout=patience(60))
        self._process.stdin.write("wired\n")
        self._process.stdin.flush()
        self._expect("up")

    def _expect(self, word: str) -> None:
        said = self._process.stdout.readline().strip()
        if said != word:
            raise RuntimeError(f"host {self._number} should be {word}, and says {said!r}")


def enter(pid: int, command: Sequence[str], *inherited: int) -> NoReturn:
    """Become `command` on the host of process `pid`, with these open files; its processes stay those of the hall."""
    for fd in inherited:
        os.set_inheritable(fd, True)
    os.execvp("nsenter", ["nsenter", f"--target={pid}", "--net", "--mount", *command])


def cut(number: int) -> None:
    """Disconnect a host; called with the hall's processes."""
    subprocess.run(["nsenter", "--target=1", "--net", "ip", "link", "set", f"port{number}", "down"], check=True, timeout=patience(60))
