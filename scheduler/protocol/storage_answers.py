"""Answers of the storage to effects: a manifest written, sinks committed, an older checkpoint found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...engine.protocol.ids import Attempt, CheckpointNumber
from ...state.errors import EvenflowError
from .manifest import Manifest

Delivery = tuple[str, Any]
"""A sink operator's name, and a payload that its sink hands over on the driver."""


@dataclass(frozen=True, slots=True)
class ManifestSaved:
    """The manifest of `checkpoint` is written, or `problem` says why not."""

    checkpoint: CheckpointNumber
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Committed:
    """The sinks have committed `checkpoint`; `error`: one of them could not."""

    checkpoint: CheckpointNumber
    deliveries: tuple[Delivery, ...] = ()
    error: EvenflowError | None = None


@dataclass(frozen=True, slots=True)
class SinksRestored:
    """The sinks are where attempt `attempt` begins; `error`: one of them can't be. `hopeless`: nor in another attempt."""

    attempt: Attempt
    deliveries: tuple[Delivery, ...] = ()
    error: EvenflowError | None = None
    hopeless: bool = False


@dataclass(frozen=True, slots=True)
class OlderFound:
    """The checkpoint to use in place of the unreadable `checkpoint`: `manifest`, None for the beginning. `error`: there is
    none.
    """

    checkpoint: CheckpointNumber
    problem: str
    manifest: Manifest | None = None
    error: EvenflowError | None = None


@dataclass(frozen=True, slots=True)
class SavepointCopied:
    """Checkpoint `checkpoint` is copied to where a savepoint was wanted, or `problem` says why not."""

    checkpoint: CheckpointNumber
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class StorageFailed:
    """An unexpected error, such as a sink's `sys.exit` or a defect in the engine. It is unknown which part was carried out."""

    error: EvenflowError


StorageAnswer = StorageFailed | ManifestSaved | Committed | SinksRestored | OlderFound | SavepointCopied
