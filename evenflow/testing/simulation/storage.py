"""The storage of a simulated job's checkpoints: in memory, as chunks and manifests that have been through their codecs."""

from __future__ import annotations

import errno
import os
import posixpath
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from random import Random
from typing import Any

from ...engine.batch import Batch
from ...engine.protocol.ids import NO_CHECKPOINT, Attempt, CheckpointNumber
from ...scheduler.protocol.effects import RememberCode, StopOrder
from ...scheduler.protocol.manifest import Manifest, TaskEntry
from ...scheduler.record.restoring.retention import Needs, retained
from ...scheduler.record.restoring.terms import Terms, first_attempt
from ...state.errors import CorruptStateError, StoreUnavailableError
from ...state.files import StateFile
from .network import SimulationError

KEPT = 2
TERM = first_attempt(1)
"""The number of attempts in a term."""


OTHERS = 2
"""Checkpoints of an earlier run that exist when the job begins."""


class MemoryStorage:
    """Durable storage. While it is `full`, nothing can be written; while it is `unreachable`, nothing can be read either; while it is
    `slow`, workers' files are delayed. `loses_reply`: the reply of the next manifest is lost.
    """

    def __init__(self) -> None:
        self.full = self.slow = self.unreachable = self.loses_reply = False
        self.troubles: Counter[str] = Counter()
        """The number of times that it became full, slow and unreachable, and of lost replies."""
        self.refused = 0
        """The number of failed writes."""
        self.committed = NO_CHECKPOINT
        """The newest checkpoint that may have been committed."""
        self.stop: StopOrder | None = None
        """The way in which the job was asked to stop."""
        self.code: RememberCode | None = None
        """The code that has replaced that of the plan."""
        self.settings: Mapping[str, Any] = {}
        """The fields of the job's changed settings."""
        self.savepoints: dict[str, tuple[Manifest, dict[str, list[Batch]]]] = {}
        """The complete savepoints by path: each is a manifest and its own copies of files."""
        self.failed_savepoints: set[str] = set()
        """The paths of savepoints whose last copy has failed."""
        self.first: Manifest | None = None
        """The manifest of another run, from which this run began."""
        self.checks_until_failure = self.commits_failed = 0
        """The number of looks at a sink until a commit fails, 0 if none does; the number of failed commits."""
        self.retractions = 0
        """The number of restores of a checkpoint before one that may have been committed."""
        self._written: dict[int, set[str]] = {}
        self._files: dict[str, list[Batch]] = {}
        self._manifests: dict[CheckpointNumber, bytes] = {}
        self._attempts: dict[CheckpointNumber, Attempt] = {}
        self._needs: dict[CheckpointNumber, Needs] = {}
        self._damaged: set[str] = set()
        self._unreadable: set[int] = set()
        self._void: set[CheckpointNumber] = set()
        self._begun: dict[int, Terms] = {0: Terms()}
        self._starts: dict[int, int] = {0: 0}
        self._swept: dict[int, Attempt] = {}
        self._shown: set[int] = set()
        self.after = NO_CHECKPOINT
        """The newest checkpoint of other runs when this one began."""
        self._others: dict[CheckpointNumber, bytes] = {}

    @property
    def _term(self) -> int:
        return max(self._starts)

    def add_another_run(self) -> None:
        """Add the checkpoints of an earlier run."""
        for number in map(CheckpointNumber, range(1, OTHERS + 1)):
            file = StateFile(f"of another run at {number}", 0, "", 0)
            self._files[file.path] = []
            tasks = {"other": (TaskEntry(files=(file,)),)}
            self._others[number] = self._manifests[number] = Manifest("other", number, Attempt(0), 0.0, 1, {}, tasks, {}, {}).to_bytes()
            self._attempts[number] = Attempt(0)
            self._needs[number] = Needs(frozenset({file.path}), frozenset({file.path}))
        self.after = CheckpointNumber(OTHERS)

    def harmed_others(self) -> list[str]:
        """Return the files and manifests of the other run that this one has removed or replaced."""
        gone = [f"the manifest of checkpoint {n}" for n, manifest in self._others.items() if self._manifests.get(n) != manifest]
        return [*gone, *(f"a file of checkpoint {n}" for n in self._others if f"of another run at {n}" not in self._files)]

    @property
    def saves(self) -> bool:
        """True if manifests are written here."""
        return bool(self._attempts)

    def completed(self, checkpoint: int) -> bool:
        """True if the checkpoint has ever had a manifest."""
        return checkpoint in self._attempts or (self.first is not None and checkpoint == self.first.checkpoint)

    def note_committed(self, checkpoint: CheckpointNumber) -> None:
        """Note that the sinks are about to commit a checkpoint: the cluster knows that of a lost coordinator."""
        self.committed = max(self.committed, checkpoint)

    def remember_settings(self, settings: Mapping[str, Any], term: int) -> None:
        """Remember the changed settings of the coordinator of a term, unless a later one has begun."""
        if term >= self._term:
            self.settings = settings

    def refuses_commit(self) -> bool:
        """True if a sink can't commit now: it asks before it commits, and afterwards."""
        if not self.checks_until_failure:
            return False
        self.checks_until_failure -= 1
        self.commits_failed += not self.checks_until_failure
        return not self.checks_until_failure

    @property
    def start(self) -> int:
        """The number of the newest start of the program."""
        return self._starts[self._term]

    def claim(self, *, new_start: bool = False) -> int:
        """Begin the next term. `new_start`: True if it belongs to another start of the program."""
        self._require_answer()
        term = self._term + 1
        self._starts[term] = self.start + new_start
        return term

    def claimed(self, term: int) -> bool:
        """True if the term has begun."""
        self._require_answer()
        return self._term >= term

    def sweep_prepared(self, attempt: Attempt) -> None:
        """Remove uncommitted output that sinks have prepared in earlier attempts of the same start."""
        start = self._starts[attempt // TERM]
        self._swept[start] = max(attempt, self._swept.get(start, attempt))

    def show(self, checkpoint: int, term: int) -> None:
        """Commit a checkpoint of the sinks for the coordinator of a term.

        Raises SimulationError if its prepared output was swept, FileNotFoundError if a later coordinator swept it.
        """
        attempt = self._attempts.get(CheckpointNumber(checkpoint))
        if attempt is not None and checkpoint not in self._shown:
            if attempt < self._swept.get(self._starts[attempt // TERM], 0):
                if term < self._term:
                    raise FileNotFoundError(f"what was prepared for checkpoint {checkpoint} is gone")
                raise SimulationError(f"checkpoint {checkpoint} is committed, and what was prepared for it was swept before")
            self._shown.add(checkpoint)

    def reached(self, terms: Terms) -> CheckpointNumber:
        """Return the newest checkpoint that may have been committed, by its manifest, which may be unreadable."""
        numbers = (n for n in self._manifests if n > self.after and terms.counts(n, self._attempts[n]))
        return max(numbers, default=NO_CHECKPOINT)

    def take_over(self, term: int) -> tuple[Terms, Manifest | None]:
        """Return the checkpoint from which the coordinator that claimed `term` begins, and note it."""
        before = self._begun[max(earlier for earlier in self._begun if earlier < term)]
        newest = self.newest(before)
        terms = self._begun[term] = before.followed_by(term, newest.checkpoint if newest is not None else 0)
        return terms, newest

    def for_next_run(self) -> MemoryStorage:
        """Return the storage of a run that begins from the savepoint with which this one stopped, or from its newest checkpoint.

        Raises SimulationError if that savepoint is missing.
        """
        after = MemoryStorage()
        path = self.stop.savepoint if self.stop is not None else None
        if path is not None and path not in self.failed_savepoints:
            if path not in self.savepoints:
                raise SimulationError(f"the job stopped, and its savepoint {path} is not complete")
            after.first, after._files = self.savepoints[path]
            return after
        newest = self.newest(self._begun[max(self._begun)])
        after.first = replace(newest, undelivered=()) if newest is not None else None
        after._files = self._files
        return after

    def begin_savepoint(self, path: str) -> dict[str, list[Batch]]:
        """Return the empty folder of a savepoint; an incomplete one of an earlier try is replaced. Raises OSError while it is full."""
        self.savepoints.pop(path, None)
        self.failed_savepoints.discard(path)
        self._require_room()
        return {}

    def put(self, checkpoint: int, path: str, chunks: list[Batch]) -> StateFile:
        """Store the chunks of one worker. Raises OSError while it is full, as every write does."""
        self._require_room()
        self._written.setdefault(checkpoint, set()).add(path)
        self._files[path] = chunks
        return StateFile(path, 0, "", sum(chunk.num_rows for chunk in chunks))

    def chunks(self, file: StateFile) -> list[Batch]:
        """Return stored chunks. Raises CorruptStateError if they are damaged or were removed."""
        self._require_answer()
        name = posixpath.basename(file.path)
        if name in self._damaged or name not in self._files:
            raise CorruptStateError(f"{file.path} was damaged or removed")
        return self._files[name]

    def complete(self, manifest: Manifest) -> None:
        """Write the manifest. Raises FileExistsError if the checkpoint has one."""
        self._require_room()
        if manifest.checkpoint in self._manifests:
            raise FileExistsError(f"checkpoint {manifest.checkpoint} has a manifest")
        self._manifests[manifest.checkpoint] = manifest.to_bytes()
        self._attempts[manifest.checkpoint] = manifest.attempt
        self._needs[manifest.checkpoint] = Needs.of(manifest)
        if self.loses_reply:
            self.loses_reply = False
            raise StoreUnavailableError("the reply is lost")

    def has(self, manifest: Manifest) -> bool:
        """True if exactly this manifest exists."""
        self._require_answer()
        return self._manifests.get(manifest.checkpoint) == manifest.to_bytes()

    def withdraw(self, checkpoint: CheckpointNumber) -> None:
        """Remove a manifest, if it exists."""
        self._require_answer()
        self._forget([checkpoint])

    def sweep(self, terms: Terms) -> None:
        """Remove files that no kept checkpoint needs."""
        own = {number: needs for number, needs in self._needs.items() if number > self.after}
        kept = retained({number: needs for number, needs in own.items() if self._counts(number, terms)}, KEPT)
        above = max(kept, default=0)
        dropped = {number: self._needs.pop(number) for number in own if number not in kept and number < above}
        needed = {path for needs in self._needs.values() for path in needs.files}
        for number, needs in dropped.items():
            del self._manifests[number]
            for path in needs.files - needed:
                self._files.pop(posixpath.basename(path), None)

    def newest(self, terms: Terms, below: int | None = None) -> Manifest | None:
        """Return the newest valid manifest (numbered below `below`) that can be read."""
        self._require_answer()
        own = (n for n in self._manifests if n > self.after)
        number = max((n for n in own if (below is None or n < below) and self._counts(n, terms)), default=None)
        return Manifest.from_bytes(self._manifests[number]) if number is not None else None

    def _counts(self, number: CheckpointNumber, terms: Terms) -> bool:
        return number not in self._unreadable and terms.counts(number, self._attempts[number])

    @property
    def last(self) -> CheckpointNumber:
        """The number of the newest checkpoint; 0 without any."""
        first = self.first.checkpoint if self.first is not None else 0
        return CheckpointNumber(max([*self._manifests, *self._void, first]))

    def declare_void(self, after: int) -> None:
        """Forbid to restore checkpoints after `after`."""
        self._require_room()
        self.retractions += 1
        self._void |= {number for number in self._manifests if number > max(after, self.after)}
        self._forget(self._void)

    def discard(self, checkpoint: int) -> None:
        """Remove the files of a failed checkpoint, unless it has a manifest: a zombie's."""
        self._require_answer()
        if checkpoint in self._manifests:
            return
        for path in self._written.pop(checkpoint, ()):
            self._files.pop(path, None)

    def discard_unfinished(self, committed: int) -> None:
        """Remove the files of all checkpoints after the newest manifest and after checkpoint `committed`, whose manifest may be lost."""
        newest = max([*self._manifests, committed], default=committed)
        for checkpoint in [number for number in self._written if number > newest]:
            self.discard(checkpoint)

    def _require_answer(self) -> None:
        if self.unreachable:
            self.refused += 1
            raise StoreUnavailableError("the store does not answer")

    def _require_room(self) -> None:
        self._require_answer()
        if self.full:
            self.refused += 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def damage(self, newest: Manifest, random: Random) -> None:
        """Damage a checkpoint: its manifest, or one of its files, which others may need too."""
        names = sorted(posixpath.basename(file.path) for file in newest.files)
        if names and random.random() < 0.7:
            self._damaged.add(random.choice(names))
        else:
            self._unreadable.add(newest.checkpoint)

    def lose(self, random: Random) -> None:
        """Lose files without a trace: the manifest of the newest checkpoint, some, all, or the whole folder."""
        there = sorted(number for number in self._manifests if number > self.after)
        which = random.choice((there[-1:], random.sample(there, random.randint(1, len(there))), there, None))
        if which is None:
            self._files = {path: chunks for path, chunks in self._files.items() if path.startswith("of another run")}
            self._begun = {0: Terms()}
        if random.random() < 0.5 or which is None:
            self._void.clear()
        self._forget(there if which is None else which)

    def _forget(self, checkpoints: Iterable[CheckpointNumber]) -> None:
        for number in checkpoints:
            self._manifests.pop(number, None)
            self._needs.pop(number, None)

    @property
    def empty(self) -> bool:
        """True if no manifest of this run is there."""
        return max(self._manifests, default=0) <= self.after
