"""Terms: the coordinator of a job that took a checkpoint, and whether the checkpoint is still valid, without I/O.

A coordinator that was taken for lost may still run (its node was cut off, or slept), with workers that run too. Each coordinator
of a run of a job has a *term*, as Raft calls it, numbered from 0, and its attempts carry the term. A coordinator claims the next
term before it looks for the newest checkpoint, and records the checkpoint that it begins from before it does anything else.

Invariant: checkpoints that a coordinator of an earlier term takes after the one from which a later term began are void.

>>> terms = Terms().followed_by(1, began=12)
>>> terms.counts(12, attempt=0), terms.counts(13, attempt=0), terms.counts(13, attempt=first_attempt(1))
(True, False, True)
>>> Terms.from_bytes(terms.to_bytes()) == terms
True
"""

from __future__ import annotations

from dataclasses import dataclass

import msgpack

from ....engine.protocol.ids import ATTEMPTS, Attempt, CheckpointNumber


def first_attempt(term: int) -> Attempt:
    """Return the number of the first attempt of a term, above those of all earlier terms."""
    return Attempt(term * ATTEMPTS)


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a run.

    `term`: the newest. `began`: each later term than 0 whose coordinator did anything, with the checkpoint it began from.
    """

    term: int = 0
    began: tuple[tuple[int, int], ...] = ()

    def followed_by(self, term: int, began: int) -> Terms:
        """Return these terms and a later one, whose coordinator resumes from checkpoint `began` (0: from the beginning)."""
        return Terms(term, (*self.began, (term, began)))

    def counts(self, checkpoint: CheckpointNumber, attempt: Attempt) -> bool:
        """Return True if the job may resume from a checkpoint that was taken in `attempt`."""
        of = attempt // ATTEMPTS
        return all(checkpoint <= began for term, began in self.began if term > of)

    def to_bytes(self) -> bytes:
        """Encode the terms."""
        packed: bytes = msgpack.packb([self.term, self.began])
        return packed

    @classmethod
    def from_bytes(cls, data: bytes) -> Terms:
        """Decode terms that `to_bytes` encoded. Raises ValueError for anything else."""
        try:
            term, began = msgpack.unpackb(data)
            return cls(int(term), tuple((int(later), int(checkpoint)) for later, checkpoint in began))
        except (TypeError, msgpack.UnpackException) as error:
            raise ValueError(f"terms can't be read: {error!r}") from error
