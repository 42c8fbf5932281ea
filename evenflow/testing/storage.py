"""Where a simulated job's checkpoints lie: in memory, as chunks and manifests that have been through their codecs."""

from __future__ import annotations

import posixpath
from random import Random

from ..engine.batch import Batch
from ..scheduler.manifest import Manifest
from ..scheduler.retention import Needs, retained
from ..scheduler.terms import Terms
from ..state.files import CorruptStateError, StateFile

KEPT = 2


class Storage:
    """What survives every crash."""

    def __init__(self) -> None:
        self._files: dict[str, list[Batch]] = {}
        self._manifests: dict[int, bytes] = {}
        self._needs: dict[int, Needs] = {}
        self._damaged: set[str] = set()
        self._unreadable: set[int] = set()
        self._void: set[int] = set()
        self._begun: dict[int, Terms] = {0: Terms()}
        self._term = 0

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

    @property
    def last(self) -> int:
        """The newest checkpoint, whether it counts or not."""
        return max(self._manifests, default=0)

    def put(self, path: str, chunks: list[Batch]) -> StateFile:
        """Keep the chunks of one worker."""
        self._files[path] = chunks
        return StateFile(path, 0, "", sum(chunk.num_rows for chunk in chunks))

    def chunks(self, file: StateFile) -> list[Batch]:
        """What was put. Raises CorruptStateError if it is damaged or was removed."""
        name = posixpath.basename(file.path)
        if name in self._damaged or name not in self._files:
            raise CorruptStateError(f"{file.path} was damaged or removed")
        return self._files[name]

    def complete(self, manifest: Manifest) -> bool:
        """Write the manifest, unless the checkpoint has one; whether it was written."""
        if manifest.checkpoint in self._manifests:
            return False
        self._manifests[manifest.checkpoint] = manifest.to_bytes()
        self._needs[manifest.checkpoint] = Needs.of(manifest)
        return True

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

    def _counts(self, number: int, terms: Terms) -> bool:
        return number not in self._lost and terms.counts(number, Manifest.from_bytes(self._manifests[number]).attempt)

    @property
    def abandoned(self) -> int:
        """The newest checkpoint that nobody can go on from; 0 if there is none."""
        return max(self._lost, default=0)

    def declare_void(self, after: int) -> None:
        """Nobody is to go on from a checkpoint behind `after` any more."""
        self._void |= {number for number in self._manifests if number > after}

    def damage(self, newest: Manifest, random: Random) -> None:
        """Damage a checkpoint: its manifest, or one of the files that it needs, which others may need too."""
        names = sorted(posixpath.basename(file.path) for file in newest.files)
        if names and random.random() < 0.7:
            self._damaged.add(random.choice(names))
        else:
            self._unreadable.add(newest.checkpoint)

    @property
    def _lost(self) -> set[int]:
        return self._unreadable | self._void
