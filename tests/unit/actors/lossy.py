"""A job in this process whose workers and coordinator can be lost, and the files that it leaves, which can be damaged."""

from __future__ import annotations

import shutil
from dataclasses import replace

from evenflow.actors.local import LocalJob
from evenflow.actors.run_memory import RunMemory
from evenflow.actors.supervisor import Supervisor


class LossyJob(LocalJob):
    """Everything that a lost coordinator knew is gone with it, but what the cluster remembers of the run."""

    incarnation = 0

    def __init__(self, plan, config):
        self._plan, self._memory = plan, RunMemory()
        super().__init__(plan, config)
        with self._lock:
            self._supervisor._memory = self._memory
            self._run_of = self._supervisor.saved._run

    def progress(self, seen, incarnation):
        with self._lock:
            now = str(self.incarnation)
            return replace(self._supervisor.progress(seen if incarnation == now else 0), incarnation=now)

    def lose_worker(self, name):
        with self._lock:
            self._supervisor.lost(name, "it was killed")
        self._woken.set()

    def lose_coordinator(self):
        with self._lock:
            self._wanted = None
            self.incarnation += 1
            self._supervisor = Supervisor(
                self._plan, self._config, self._tell, self._carry, run=self._run_of, resume=True, memory=self._memory
            )  # fmt: skip
            self._supervisor.redeploy()
        self._woken.set()


def delete(path):
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path):
    path.write_bytes(b"")


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def make_unreadable(path):
    """A folder in its place: the superuser reads everything else."""
    path.unlink()
    path.mkdir()
