"""The versions of packed states: each says which version of the user's code wrote it, and older ones are migrated when they are installed.

The mark is part of a state's bytes, so it is in chunks of moves, in files and in backends, also in those that pass state on without
sending it. Invariant: a state without a mark is of version 1, and its bytes are those of the time before there were versions.

>>> marked(1, b"state"), version_of(b"state")
(b'state', 1)
>>> version_of(marked(300, b"state")), unmarked(marked(300, b"state"))
(300, b'state')
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from ...state_version import FIRST, StateVersion

MARK = b"\xc1"
"""The first byte of a state with a version: no packed value begins with it."""

_SIZE = 4
_first_byte = itemgetter(slice(0, 1))


@dataclass(frozen=True, slots=True)
class Migration:
    """The version of an operator's state, and `migrate(version, state)`, which converts plain states of an older `version`.

    It returns a plain state of the code's own version. Raises UnfitError if the user's function has returned something else.
    """

    version: StateVersion = FIRST
    migrate: Callable[[int, Any], Any] | None = None

    @property
    def mark(self) -> bytes:
        """The beginning of states of this version; empty for version 1."""
        return mark_of(self.version.number)

    @property
    def converts(self) -> bool:
        """True if the code may read states that it would write otherwise."""
        return self.version.number > 1 or bool(self.version.renamed)

    def of_this_version(self, packed: Sequence[bytes]) -> bool:
        """True if no state is of another version."""
        mark = self.mark
        if mark:
            return all(state.startswith(mark) for state in packed)
        return MARK not in map(_first_byte, packed)


def mark_of(version: int) -> bytes:
    """Return the beginning of states of a version."""
    return b"" if version == 1 else MARK + version.to_bytes(_SIZE, "little")


def marked(version: int, packed: bytes) -> bytes:
    """Return a packed state with its version."""
    return mark_of(version) + packed


def version_of(packed: bytes) -> int:
    """Return the version of a state."""
    return int.from_bytes(packed[1 : 1 + _SIZE], "little") if packed.startswith(MARK) else 1


def unmarked(packed: bytes) -> bytes:
    """Return a packed state without its version."""
    return packed[1 + _SIZE :] if packed.startswith(MARK) else packed
