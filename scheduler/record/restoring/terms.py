"""Terms: which coordinator of a job a checkpoint is of, and whether it still counts, without I/O.

A coordinator that was taken for lost may still be there (its node was cut off, or slept) and go on with workers that are there too. Each
coordinator of a run of a job has a *term*, as Raft calls it, numbered from 0, and its attempts carry the term. A coordinator claims the
next term before it looks for the newest checkpoint, and writes down from which one it began before it does anything else.

Invariant: what coordinators of earlier terms save behind the checkpoint from which a later one began does not count.

>>> terms = Terms().followed_by(1, began=12)
>>> terms.counts(12, attempt=0), terms.counts(13, attempt=0), terms.counts(13, attempt=first_attempt(1))
(True, False, True)
>>> Terms.from_bytes(terms.to_bytes()) == terms
True
"""

from __future__ import annotations

from dataclasses import dataclass

import msgpack

from ....engine.protocol.ids import Attempt, CheckpointNumber

_ATTEMPTS = 1 << 32
"""More than a coordinator ever makes."""


def first_attempt(term: int) -> Attempt:
    """The number of the first attempt of a term: higher than all of the terms before."""
    return Attempt(term * _ATTEMPTS)


@dataclass(frozen=True, slots=True)
class Terms:
    """`term`: the newest. `began`: each later term than 0 whose coordinator came to do anything, with the checkpoint it began from."""

    term: int = 0
    began: tuple[tuple[int, int], ...] = ()

    def followed_by(self, term: int, began: int) -> Terms:
        """With a later term, whose coordinator goes on from checkpoint `began` (0: from the beginning)."""
        return Terms(term, (*self.began, (term, began)))

    def counts(self, checkpoint: CheckpointNumber, attempt: Attempt) -> bool:
        """Whether a checkpoint that was taken in `attempt` is one that the job may go on from."""
        of = attempt // _ATTEMPTS
        return all(checkpoint <= began for term, began in self.began if term > of)

    def to_bytes(self) -> bytes:
        """As it is written."""
        packed: bytes = msgpack.packb([self.term, self.began])
        return packed

    @classmethod
    def from_bytes(cls, data: bytes) -> Terms:
        """What `to_bytes` wrote. Raises ValueError for anything else."""
        try:
            term, began = msgpack.unpackb(data)
            return cls(int(term), tuple((int(later), int(checkpoint)) for later, checkpoint in began))
        except (TypeError, msgpack.UnpackException) as error:
            raise ValueError(f"terms can't be read: {error!r}") from error
