"""A job in this process whose workers and coordinator can be lost, and its files, which can be damaged."""

from __future__ import annotations

import shutil
from dataclasses import replace

from patience import patience

from evenflow.actors.clocks import JobClock
from evenflow.actors.job.job_interpreter import JobInterpreter
from evenflow.actors.job.job_storage import JobStorage
from evenflow.actors.job.storage_thread import StorageThread
from evenflow.actors.local import LocalJob
from evenflow.scheduler.job.core import JobCore
from evenflow.scheduler.protocol.requests import ShowProgress

PATIENCE = patience(30)


class LossyJob(LocalJob):
    """A job whose coordinator loses all its knowledge with its process, except the cluster's memory of the run."""

    incarnation = 0

    def __init__(self, plan, config, claim=None):
        self._plan = plan
        super().__init__(plan, config, claim=claim)

    def ask(self, request):
        if not isinstance(request, ShowProgress):
            return super().ask(request)
        with self._interpreter.lock:
            now = str(self.incarnation)
            return replace(super().ask(ShowProgress(request.seen if request.incarnation == now else 0)), incarnation=now)

    def lose_worker(self, name):
        self._interpreter.lost(name, "it was killed")
        self._woken.set()

    def lose_coordinator(self):
        """Replace the coordinator, after its storage has carried out its pending effects."""
        lost = self._interpreter
        with lost.lock:
            assert self._storage.close(PATIENCE)
            saved = JobStorage(self._plan, self._config, claim=self._saved._claim, memory=self._saved._memory)
            core = JobCore(self._plan, self._config, saved.restore_point(takes_over=True))
            self._answers.clear()
            self._changes.clear()
            self._saved, self._storage = saved, StorageThread(core.name, saved, self._answered)
            self._interpreter = JobInterpreter(core, self, self._storage, JobClock())
            self._interpreter.lock = lost.lock
            self.incarnation += 1
            self._interpreter.begin()
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
    """Replace the file by a folder: the superuser can read everything else."""
    path.unlink()
    path.mkdir()
