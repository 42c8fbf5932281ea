"""The complete checkpoints to keep: the newest ones, and older ones to fall back to if a file is damaged.

Checkpoints share the files of chains, so the newest ones may all need the same whole file. For each file that begins a chain of
the newest checkpoint, the newest checkpoint without that file stays too. It needs none of the later files in that chain either,
so whichever single file of the newest checkpoint is damaged, one checkpoint remains readable.

>>> first, second = Needs(frozenset("ab"), frozenset("a")), Needs(frozenset("cd"), frozenset("c"))
>>> sorted(retained({1: Needs(frozenset("a"), frozenset("a")), 2: first, 3: Needs(frozenset("c"), frozenset("c")), 4: second}, 1))
[2, 4]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ....engine.protocol.ids import CheckpointNumber
from ....state.store import path_from_sibling
from ...protocol.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Needs:
    """The state files that a checkpoint needs, with paths relative to its sibling folders; `wholes` are those that begin a
    chain.
    """

    files: frozenset[str]
    wholes: frozenset[str]

    @classmethod
    def of(cls, manifest: Manifest) -> Needs:
        """Return the needs of the checkpoint that `manifest` describes."""
        chains = [
            [path_from_sibling(file.path, manifest.checkpoint) for file in entry.files]
            for entries in manifest.tasks.values()
            for entry in entries
        ]
        return cls(frozenset(path for chain in chains for path in chain), frozenset(chain[0] for chain in chains if chain))


def retained(needs: Mapping[CheckpointNumber, Needs], kept: int) -> set[CheckpointNumber]:
    """Return the numbers of the `kept` newest checkpoints, and of the newest without each whole file that the newest one
    needs.
    """
    numbers = sorted(needs, reverse=True)
    stay = set(numbers[:kept])
    shared = needs[numbers[0]].wholes if numbers else frozenset()
    for number in numbers:
        left = shared & needs[number].files
        if left != shared:
            stay.add(number)
        shared = left
    return stay
