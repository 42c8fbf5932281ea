"""Where a simulated job's checkpoints lie: in memory, as chunks and manifests that have been through their codecs."""

from __future__ import annotations

import errno
import os
import posixpath
from collections import Counter
from collections.abc import Iterable
from random import Random

from ..engine.batch import Batch
from ..engine.protocol.ids import NO_CHECKPOINT, Attempt, CheckpointNumber
from ..scheduler.checkpoints.manifest import Manifest
from ..scheduler.checkpoints.retention import Needs, retained
from ..scheduler.checkpoints.terms import Terms
from ..state.errors import CorruptStateError
from ..state.files import StateFile

KEPT = 2


class Storage:
    """What survives every crash. While it is `full`, nothing can be written; while it is `slow`, workers' files take their time."""

    def __init__(self) -> None:
        self.full = self.slow = False
        self.troubles: Counter[str] = Counter()
        """How often it has become full, and slow."""
        self.refused = 0
        """How often something could not be written."""
        self.committed = NO_CHECKPOINT
        """The newest checkpoint that may have been committed."""
        self.looks_until_failure = self.commits_failed = 0
        """After how many looks at a sink it can't commit, 0 if it can; how often it could not."""
        self.retractions = 0
        """How often the job has gone back behind a checkpoint that may have been committed."""
        self._written: dict[int, set[str]] = {}
        self._files: dict[str, list[Batch]] = {}
        self._manifests: dict[CheckpointNumber, bytes] = {}
        self._attempts: dict[CheckpointNumber, Attempt] = {}
        self._needs: dict[CheckpointNumber, Needs] = {}
        self._damaged: set[str] = set()
        self._unreadable: set[int] = set()
        self._void: set[CheckpointNumber] = set()
        self._begun: dict[int, Terms] = {0: Terms()}
        self._term = 0

    @property
    def saves(self) -> bool:
        """Whether manifests are written here."""
        return bool(self._attempts)

    def completed(self, checkpoint: int) -> bool:
        """Whether the checkpoint has ever had a manifest."""
        return checkpoint in self._attempts

    def note_committed(self, checkpoint: CheckpointNumber) -> None:
        """The sinks are about to commit it: what the cluster knows of a coordinator that is lost."""
        self.committed = max(self.committed, checkpoint)

    def refuses_commit(self) -> bool:
        """Whether a sink can't commit now: it is asked before it commits, and afterwards."""
        if not self.looks_until_failure:
            return False
        self.looks_until_failure -= 1
        self.commits_failed += not self.looks_until_failure
        return not self.looks_until_failure

    def claim(self) -> int:
        """Begin the next term."""
        self._term += 1
        return self._term

    def claimed(self, term: int) -> bool:
        """Whether it has begun."""
        return self._term >= term

    def take_over(self, term: int) -> tuple[Terms, Manifest | None]:
        """What the coordinator that claimed `term` begins from, which is noted."""
        before = self._begun[max(earlier for earlier in self._begun if earlier < term)]
        newest = self.newest(before)
        terms = self._begun[term] = before.followed_by(term, newest.checkpoint if newest is not None else 0)
        return terms, newest

    def put(self, checkpoint: int, path: str, chunks: list[Batch]) -> StateFile:
        """Keep the chunks of one worker. Raises OSError while it is full, as all that writes does."""
        self._require_room()
        self._written.setdefault(checkpoint, set()).add(path)
        self._files[path] = chunks
        return StateFile(path, 0, "", sum(chunk.num_rows for chunk in chunks))

    def chunks(self, file: StateFile) -> list[Batch]:
        """What was put. Raises CorruptStateError if it is damaged or was removed."""
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

    def sweep(self, terms: Terms) -> None:
        """Remove what is no longer kept."""
        kept = retained({number: needs for number, needs in self._needs.items() if self._counts(number, terms)}, KEPT)
        above = max(kept, default=0)
        dropped = {number: self._needs.pop(number) for number in [*self._manifests] if number not in kept and number < above}
        needed = {path for needs in self._needs.values() for path in needs.files}
        for number, needs in dropped.items():
            del self._manifests[number]
            for path in needs.files - needed:
                self._files.pop(posixpath.basename(path), None)

    def newest(self, terms: Terms, below: int | None = None) -> Manifest | None:
        """The newest manifest (numbered below `below`) that can be read, is not void, and counts."""
        number = max((n for n in self._manifests if (below is None or n < below) and self._counts(n, terms)), default=None)
        return Manifest.from_bytes(self._manifests[number]) if number is not None else None

    def _counts(self, number: CheckpointNumber, terms: Terms) -> bool:
        return number not in self._unreadable and terms.counts(number, self._attempts[number])

    @property
    def last(self) -> CheckpointNumber:
        """The number of the newest checkpoint that is there; 0 if there is none."""
        return CheckpointNumber(max([*self._manifests, *self._void], default=0))

    def declare_void(self, after: int) -> None:
        """Checkpoints after `after` can no longer be restored."""
        self._require_room()
        self.retractions += 1
        self._void |= {number for number in self._manifests if number > after}
        self._forget(self._void)

    def discard(self, checkpoint: int) -> None:
        """Remove the files of a checkpoint that came to nothing, unless it has a manifest: a zombie's."""
        if checkpoint in self._manifests:
            return
        for path in self._written.pop(checkpoint, ()):
            self._files.pop(path, None)

    def discard_unfinished(self, committed: int) -> None:
        """The same, of all behind the newest manifest and behind checkpoint `committed`, whose manifest may be gone."""
        newest = max([*self._manifests, committed])
        for checkpoint in [number for number in self._written if number > newest]:
            self.discard(checkpoint)

    def _require_room(self) -> None:
        if self.full:
            self.refused += 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def damage(self, newest: Manifest, random: Random) -> None:
        """Damage a checkpoint: its manifest, or one of the files that it needs, which others may need too."""
        names = sorted(posixpath.basename(file.path) for file in newest.files)
        if names and random.random() < 0.7:
            self._damaged.add(random.choice(names))
        else:
            self._unreadable.add(newest.checkpoint)

    def lose(self, random: Random) -> None:
        """Files are gone, and nothing tells that they existed: the manifest of the newest checkpoint, some, all, or the whole folder."""
        there = sorted(self._manifests)
        which = random.choice((there[-1:], random.sample(there, random.randint(1, len(there))), there, None))
        if which is None:
            self._files.clear()
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
        """Whether no manifest is there."""
        return not self._manifests
