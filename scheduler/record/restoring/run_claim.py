"""A run of a job in its checkpoint folder: which process owns it, and whether a new start of the program continues it. Without
I/O.

A *run* begins with a start of the program and includes every later start that continues it. Each start, and each coordinator that
replaces a lost one, claims the next *term* of the folder (`terms.py`); only the owner of the newest term may write. An owner
writes a sign of life every few seconds, and at its end a note how the job ended.

Invariant: a claim is taken from its owner only if the owner has ended, its process is gone, or it has given no sign of life for
`LEASE` seconds; or if the user says so.

>>> owner = Owner("host-a", "boot 1", 4711, "9", 1764000000.0)
>>> claim = RunClaim("4f6a", "c2", 3, owner=owner)
>>> RunClaim.from_bytes(3, claim.to_bytes()) == claim
True
>>> str(owner)
'process 4711 on host-a, since 2025-11-24 16:00:00 UTC'
"""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum

from .fitting import Allowed

BEAT = 5.0
"""Seconds between two signs of life."""

LEASE = 20.0
"""Seconds without a sign of life after which an owner counts as lost."""

BEATING, ENDED, BEGUN = "beat", "ended", "begun"
"""The notes of a claim: the newest sign of life, how the job ended, and from which checkpoint it began."""


RESUME = ("auto", "required", "never")


@dataclass(frozen=True, slots=True)
class StartOptions:
    """The arguments of `Dataflow.run` about a start. `allowed`: which state may differ. `from_savepoint`: True if it begins from
    one.
    """

    resume: str = "auto"
    takeover: bool = False
    allowed: Allowed = field(default_factory=Allowed)
    from_savepoint: bool = False


class RunEnd(StrEnum):
    """The end of a process's part of a run. UNSTARTED: the start was rejected, and nothing has run. DISCARDED: the run can't be
    continued.
    """

    UNSTARTED = "unstarted"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DISCARDED = "discarded"


@dataclass(frozen=True, slots=True)
class Owner:
    """A process: `machine` names this boot of its machine and its process namespace, `born` when it began, by the kernel's count.

    `since`: seconds since the epoch when it claimed the run; `cluster`: the address of its Ray cluster. A `detached` job outlives
    it.
    """

    host: str
    machine: str
    pid: int
    born: str
    since: float
    cluster: str = ""
    detached: bool = False

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.since, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        who = f"a detached job that process {self.pid} on {self.host} started" if self.detached else f"process {self.pid} on {self.host}"
        return f"{who}, since {since}" + (f", on the Ray cluster {self.cluster}" if self.cluster else "")


@dataclass(frozen=True, slots=True)
class RunClaim:
    """The claim of a term. `run`: names the run, `start` the start of the program that claimed it.

    `after`: the newest checkpoint when the run began; those up to it belong to other runs. `resumes`: this start continues the
    run. `nonce` distinguishes two claims of the same process. `allowed`: the permitted differences from the state of the run; it
    is not written. The default has no folder, and claims nothing.
    """

    run: str = ""
    start: str = ""
    term: int = 0
    after: int = 0
    resumes: bool = False
    owner: Owner | None = None
    nonce: str = field(default="", compare=False)
    allowed: Allowed = field(default_factory=Allowed, compare=False)

    def of_term(self, term: int) -> RunClaim:
        """Return the same start's claim of another term."""
        return replace(self, term=term, nonce=secrets.token_hex(8))

    def to_bytes(self) -> bytes:
        """Encode the claim as readable JSON."""
        return json.dumps({name: value for name, value in asdict(self).items() if name not in {"term", "allowed"}}, indent=1).encode()

    @classmethod
    def from_bytes(cls, term: int, data: bytes) -> RunClaim:
        """Decode a claim that `to_bytes` encoded. A claim that can't be read has no owner and no run."""
        try:
            fields = json.loads(data)
            owner = None if fields["owner"] is None else Owner(**fields.pop("owner"))
            return cls(**{**fields, "owner": owner, "term": term})
        except (ValueError, TypeError, KeyError):
            return cls(term=term)


@dataclass(frozen=True, slots=True)
class LifeSign:
    """An owner's newest sign of life, by number and time (seconds since the epoch by its clock), and its job's end, None before
    that.
    """

    count: int = 0
    at: float = 0.0
    end: RunEnd | None = None

    @classmethod
    def of(cls, beat: bytes | None, end: bytes | None) -> LifeSign:
        """Decode the notes; one that can't be decoded is ignored."""
        known = next((each for each in RunEnd if end is not None and each.value == end.decode(errors="replace")), None)
        try:
            count, at = json.loads(beat) if beat is not None else (0, 0.0)
            return cls(int(count), float(at), known)
        except (TypeError, ValueError):
            return cls(end=known)

    def to_bytes(self) -> bytes:
        """Encode the sign of life."""
        return json.dumps([self.count, self.at]).encode()


class Life(StrEnum):
    """The state of an owner. UNKNOWN: it counts as lost if no sign of life comes for `LEASE` seconds."""

    GONE = "gone"
    ALIVE = "alive"
    UNKNOWN = "unknown"


def life(claim: RunClaim, sign: LifeSign, me: Owner, *, runs: bool) -> Life:
    """Return the state of the owner of a claim, as seen by `me` at `me.since`.

    `runs`: this machine runs the owner's process; if that is this process, it runs the claimed job.
    """
    owner = claim.owner
    if sign.end is not None or owner is None:
        return Life.GONE
    here = owner.machine == me.machine and bool(me.machine)
    if here and not owner.detached and not runs:
        return Life.GONE
    silent = me.since - max(sign.at, owner.since)
    if here and silent > LEASE:
        return Life.GONE
    return Life.ALIVE if here else Life.UNKNOWN
