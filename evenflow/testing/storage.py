"""Where a simulated job's checkpoints lie: in memory, as chunks and manifests that have been through their codecs."""

from __future__ import annotations

import posixpath
from random import Random

from ..engine.batch import Batch
from ..scheduler.manifest import Manifest
from ..state.files import CorruptStateError, StateFile


class Storage:
    """What survives every crash."""

    def __init__(self) -> None:
        self._files: dict[str, list[Batch]] = {}
        self._manifests: dict[int, bytes] = {}
        self._names: dict[int, frozenset[str]] = {}
        self._damaged: set[str] = set()
        self._unreadable: set[int] = set()
        self._void: set[int] = set()

    def put(self, path: str, chunks: list[Batch]) -> StateFile:
        """Keep the chunks of one worker."""
        self._files[path] = chunks
        return StateFile(path, 0, "", sum(chunk.num_rows for chunk in chunks))

    def chunks(self, file: StateFile) -> list[Batch]:
        """What was put. Raises CorruptStateError if it is damaged."""
        if posixpath.basename(file.path) in self._damaged:
            raise CorruptStateError(f"{file.path} was damaged")
        return self._files[posixpath.basename(file.path)]

    def complete(self, manifest: Manifest) -> None:
        """Write the manifest."""
        self._manifests[manifest.checkpoint] = manifest.to_bytes()
        self._names[manifest.checkpoint] = frozenset(posixpath.basename(file.path) for file in manifest.files)

    def newest(self, below: int | None = None) -> Manifest | None:
        """The newest manifest (numbered below `below`) that can be read and is not void."""
        number = self._newest_readable(below)
        return Manifest.from_bytes(self._manifests[number]) if number is not None else None

    @property
    def abandoned(self) -> int:
        """The newest checkpoint that nobody can go on from; 0 if there is none."""
        return max(self._unreadable | self._void, default=0)

    def declare_void(self, after: int) -> None:
        """Nobody is to go on from a checkpoint behind `after` any more."""
        self._void |= {number for number in self._manifests if number > after}

    def damage(self, random: Random) -> None:
        """Damage the newest checkpoint that can be read: its manifest, or the files that only it needs, if there are any."""
        newest = self._newest_readable(below=None)
        if newest is None:
            return
        older = self._newest_readable(below=newest)
        own = self._names[newest] - (self._names[older] if older is not None else frozenset())
        if own and random.random() < 0.7:
            self._damaged.add(random.choice(sorted(own)))
        else:
            self._unreadable.add(newest)

    @property
    def sound(self) -> int:
        """How many checkpoints there are that can be gone on from."""
        lost = self._unreadable | self._void
        return sum(number not in lost and names.isdisjoint(self._damaged) for number, names in self._names.items())

    def _newest_readable(self, below: int | None) -> int | None:
        lost = self._unreadable | self._void
        return max((number for number in self._manifests if number not in lost and (below is None or number < below)), default=None)
