"""A job's state machine with fake workers and storage that act at once, when a test lets them."""

from __future__ import annotations

from evenflow.engine.protocol.effects import Finished, Prepared, Rewound
from evenflow.engine.protocol.handover_step import Arrived
from evenflow.engine.protocol.ids import index_of, stage_of
from evenflow.scheduler.job.core import JobCore
from evenflow.scheduler.protocol.effects import (
    AskForRoom,
    Commit,
    CopySavepoint,
    Deploy,
    Reserve,
    RestoreSinks,
    Retire,
    Save,
    Spawn,
    Tell,
    UseNodes,
)
from evenflow.scheduler.protocol.messages import (
    Announce,
    Announced,
    Attach,
    Attached,
    BeginCheckpoint,
    Detach,
    ExpectRewind,
    PauseSource,
    SourcePaused,
    Switch,
    TakeSource,
)
from evenflow.scheduler.protocol.storage_answers import Committed, ManifestSaved, SavepointCopied, SinksRestored

ROUNDS = 100


class ActingJob:
    """A job with fake workers. `commands`: commands not carried out yet. `pending`: other effects not carried out yet; `done`:
    those that were.
    """

    def __init__(self, plan, config):
        self.core, self.now = JobCore(plan, config), 1000.0
        self.commands, self.pending, self.done = [], [], []
        self._steps, self._switched = {}, set()
        self.core.begin(self.now)
        self.take()
        self.settle()
        self.done.clear()

    def view(self):
        """Return the cluster as the job sees it; there is none."""
        return

    def take(self):
        """Take the job's effects. Requests to the cluster are carried out at once, but not before earlier effects."""
        while effects := self.core.effects():
            for effect in effects:
                if isinstance(effect, (UseNodes, Reserve, AskForRoom)) and not self.pending:
                    self.carry_out(effect)
                else:
                    (self.commands if isinstance(effect, Tell) else self.pending).append(effect)

    def ask(self, request):
        try:
            return self.core.answer(request, self.now, self.view())
        finally:
            self.take()

    def report(self, worker, report):
        self.core.report(worker, report, self.now)
        self.take()

    def lost(self, worker, why):
        self.core.lost(worker, why, self.now)
        self.take()

    def not_spawned(self, problem):
        """Report that the joining workers did not start."""
        (spawn,) = [effect for effect in self.pending if isinstance(effect, Spawn)]
        self.pending.remove(spawn)
        self.core.not_spawned(spawn.workers, spawn.attempt, problem, self.now)
        self.take()

    def tick(self, seconds=0.0):
        self.now += seconds
        self.core.tick(self.now, self.view())
        self.take()

    def obey(self):
        """Carry out all commands, until there are none; nothing else is carried out."""
        while self.commands:
            tell = self.commands.pop(0)
            self.answer(tell.worker, tell.command)

    def settle(self):
        """Carry out all commands and effects, until none are left."""
        while self.commands or self.pending:
            self.obey()
            while self.pending:
                effect = self.pending.pop(0)
                self.done.append(effect)
                self.carry_out(effect)
                self.take()

    def carry_out(self, effect):
        core = self.core
        if isinstance(effect, (Spawn, Deploy)):
            for name in effect.workers if isinstance(effect, Spawn) else tuple(task.name for task in effect.plan.tasks):
                self.start(name, effect.attempt)
        elif isinstance(effect, Save):
            core.stored(ManifestSaved(effect.manifest.checkpoint), self.now)
        elif isinstance(effect, Commit):
            core.stored(Committed(effect.checkpoint), self.now)
        elif isinstance(effect, CopySavepoint):
            core.stored(SavepointCopied(effect.manifest.checkpoint), self.now)
        elif isinstance(effect, RestoreSinks):
            core.stored(SinksRestored(effect.attempt), self.now)

    def start(self, worker, attempt):
        self.core.ready(worker, attempt, self.now)

    def answer(self, worker, command):
        """Report as a worker does once it has carried out the command."""
        if isinstance(command, Announce):
            self._steps.update({step.version: step for step in command.steps})
            self.report(worker, Announced(command.number))
        elif isinstance(command, Switch):
            self._switch(worker, command.version)
        elif isinstance(command, (Attach, Detach, ExpectRewind)):
            self.report(worker, Attached(command.token))
            if isinstance(command, Detach) and command.outputs and self.core.rescaling is not None:
                for leaving in self.core.rescaling.rescale.leaving:
                    self.report(leaving, Finished({}))
        elif isinstance(command, PauseSource):
            self.report(worker, SourcePaused(command.token, self._position(worker)))
        elif isinstance(command, TakeSource):
            self._share(worker, command)
        elif isinstance(command, BeginCheckpoint):
            for name in self.core.workers:
                self.report(name, Prepared(command.checkpoint, {}))

    def _switch(self, worker, version):
        if version not in self._switched:
            self._switched.add(version)
            workers = self.core.plan.stage_of(self.core.migrations.current.stage).workers
            for move in self._steps[version].moves:
                self.report(workers[move.target], Arrived(version, move.source, 1, 10))

    def _position(self, worker):
        stage, index = stage_of(worker), index_of(worker)
        readers = sum(task.stage == stage for task in self.core.rescaling.before.tasks)
        return self.core.plan.stage_of(stage).chain[0].operator.source.reader(index, readers).position()

    def _share(self, worker, share):
        if index_of(worker) == 0:
            for name in self.core.rescaling.rewinding.copy():
                self.report(name, Rewound())
        if share.position is None:
            self.report(worker, Finished({}))

    @property
    def retired(self):
        return [effect.workers for effect in (*self.done, *self.pending) if isinstance(effect, Retire)]
