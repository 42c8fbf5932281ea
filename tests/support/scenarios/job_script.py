"""A job's state machine that is driven by hand: every event is a method that returns the effects of it.

Storage and the workers answer only when a test calls for it. Times are seconds; an event without one happens at the time of the
last one.
"""

from __future__ import annotations

import evenflow as ef
from evenflow.engine.errors import JobError
from evenflow.engine.protocol.effects import Finished, Prepared
from evenflow.scheduler.job.core import JobCore
from evenflow.scheduler.protocol.effects import Commit, Deploy, JobState, RememberStart, RememberStop, RestoreSinks, Save, Tell, Warn
from evenflow.scheduler.protocol.messages import BeginCheckpoint, Failed
from evenflow.scheduler.protocol.reports import CheckpointReport
from evenflow.scheduler.protocol.requests import Cancel, ShowHistory, Stop
from evenflow.scheduler.protocol.storage_answers import Committed, ManifestSaved, OlderFound, SinksRestored
from evenflow.state.files import StateFile
from evenflow.testing.settings import changed

WORKERS = ("from_items-0", "from_items-1", "aggregate-0", "aggregate-1")
"""The workers of `counting`."""


def counting(**config):
    """Return the plan of a job that counts items, with two workers for each operator and 4 key groups, and its settings."""
    settings = changed(ef.JobConfig(parallelism=2, key_groups=4, checkpoint=ef.CheckpointConfig(interval=None)), **config)
    flow = ef.Dataflow("f")
    flow.read(ef.from_items([1])).key_by("item").aggregate(n=ef.count()).write(ef.to_list([]))
    return flow.plan(config=settings), settings


ROWS = [f"rows of {worker}" for worker in WORKERS]
"""The output that `prepare` gives the sinks."""

LAST = [f"last of {worker}" for worker in WORKERS]
"""The output that `finish` gives the sinks."""

FULL = "OSError: the disk is full"

LOST = JobError("worker aggregate-0 is gone")


class ScriptedJob:
    """A job driven by hand. `core`: its state machine; `logged`: the lines for the job's log, which no event returns."""

    def __init__(self, plan, config, begin=None):
        self.core, self.now, self.logged = JobCore(plan, config, begin), 0.0, []

    def after(self, event, *what, now=None):
        """Return the effects of an event of the state machine, and of earlier requests."""
        self.now = self.now if now is None else now
        event(*what, self.now)
        return self._effects()

    def _effects(self):
        found = self.core.effects()
        self.logged += [effect.text for effect in found if isinstance(effect, Warn)]
        return [effect for effect in found if not isinstance(effect, Warn)]

    def begin(self, now=None):
        return self.after(self.core.begin, now=now)

    def ready(self, worker, now=None):
        return self.after(self.core.ready, worker, self.core.attempt, now=now)

    def report(self, worker, report, now=None):
        return self.after(self.core.report, worker, report, now=now)

    def failed(self, error, now=None):
        return self.report(self.core.workers[0], Failed(error), now)

    def lost(self, worker, why="killed", now=None):
        return self.after(self.core.lost, worker, why, now=now)

    def tick(self, now=None, cluster=None):
        return self.after(lambda at: self.core.tick(at, cluster), now=now)

    def stored(self, answer, now=None):
        return self.after(self.core.stored, answer, now=now)

    def saved(self, checkpoint, problem=None, now=None):
        return self.stored(ManifestSaved(checkpoint, problem), now)

    def committed(self, checkpoint, error=None, now=None):
        return self.stored(Committed(checkpoint, error=error), now)

    def sinks_restored(self, now=None, **answer):
        return self.stored(SinksRestored(self.core.attempt, **answer), now)

    def older_found(self, checkpoint, problem, manifest=None, error=None, now=None):
        return self.stored(OlderFound(checkpoint, problem, manifest, error), now)

    def ask(self, request, now=None, cluster=None):
        """Answer a request; its effects are among those of the next event."""
        self.now = self.now if now is None else now
        return self.core.answer(request, self.now, cluster)

    def request(self, request, now=None, cluster=None):
        """Return the effects of a request that is answered with None."""
        assert self.ask(request, now, cluster) is None
        return self._effects()

    def stop(self, now=None, *, drain=True):
        """Ask the job to stop, and return the effects except the note that it is to stop."""
        return [effect for effect in self.request(Stop(drain), now) if not isinstance(effect, RememberStop)]

    def cancel(self, now=None):
        return self.request(Cancel(), now)

    def start(self, now=None):
        """Start the job, or its newest attempt, until all workers run."""
        found = self.begin(now) if self.core.state is JobState.STARTING else self._effects()
        assert all(isinstance(effect, RestoreSinks) for effect in found)
        (deploy,) = self.sinks_restored()
        assert isinstance(deploy, Deploy)
        return self.run()

    def run(self, now=None):
        """Start all workers of the attempt that was deployed."""
        for worker in self.core.workers:
            found = self.ready(worker, now)
            assert all(isinstance(effect, RememberStart) for effect in found)
        assert self.core.state is JobState.RUNNING
        return self

    def prepare(self, checkpoint, now=None, workers=WORKERS):
        """Save 3 keys in each worker."""
        found = []
        for worker in workers:
            files = (StateFile(f"{worker}.state", 7, "aa", 3),)
            found += self.report(worker, Prepared(checkpoint, {"to_list": [f"rows of {worker}"]}, 5, None, files), now)
        return found

    def finish(self, now=None):
        """Send the last element of all workers."""
        return [effect for worker in WORKERS for effect in self.report(worker, Finished({"to_list": [f"last of {worker}"]}), now)]

    def take_checkpoint(self, now=10.0):
        """Take a checkpoint up to its commit. Return its manifest and its committables."""
        assert recipients(self.tick(now), BeginCheckpoint)
        number = self.core.checkpoints.last
        (save,) = self.prepare(number)
        (commit,) = self.saved(number)
        self.committed(number)
        return save.manifest, commit

    def restart(self, now):
        """Restart after the delay: restore the sinks, deploy and start the workers. Return the effects for both."""
        (sinks,) = self.tick(now)
        (deploy,) = self.sinks_restored()
        self.run()
        return sinks, deploy

    def reports(self, now=None):
        return self.ask(ShowHistory(CheckpointReport), now)


def new_saving_job(begin=None, **config):
    """Return a job of `counting` with checkpoints every 10 s, which restarts a second after an accident, twice at most."""
    checkpoint = {"interval": 10.0, "dir": "saved", **config.pop("checkpoint", {})}
    restart = {"strategy": "fixed", "delay": 1.0, "most": 2, **config.pop("restart", {})}
    return ScriptedJob(*counting(checkpoint=checkpoint, restart=restart, **config), begin)


def saving_job(begin=None, **config):
    return new_saving_job(begin, **config).start()


def recipients(effects, command):
    """Return the recipients of a command, sorted; `command` is one, or a type."""
    tells = [effect for effect in effects if isinstance(effect, Tell)]
    return sorted(t.worker for t in tells if (isinstance(t.command, command) if isinstance(command, type) else t.command == command))


def of_kind(effects, kind):
    return [effect for effect in effects if isinstance(effect, kind)]


def kinds(effects):
    return [type(effect) for effect in effects]


def commits(effects):
    """Return the commits: checkpoints with the committables of each."""
    return [(effect.checkpoint, effect.committables) for effect in of_kind(effects, Commit)]


def manifests(effects):
    return [effect.manifest for effect in of_kind(effects, Save)]
