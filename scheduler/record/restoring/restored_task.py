"""What one task goes on from: plain data, made from a manifest and sent to its worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ....engine.protocol.elements import MIN_TIME
from ....engine.protocol.ids import CheckpointNumber
from ....engine.protocol.restored_keys import RestoredKeys
from ....engine.state_description import PartsChange
from ....state.files import StateFile


@dataclass(frozen=True, slots=True)
class RestoredChain:
    """The files of one worker of then, the oldest first."""

    worker: int
    files: tuple[StateFile, ...]


@dataclass(frozen=True, slots=True)
class RestoredTask:
    """What one task goes on from: files of checkpoint `checkpoint` in the store at `url`; those rows count that `keys` gives it.

    `chains`: those that may have such rows. `keys.same`: its state is what its only chain adds up to. `keys` None: it has no keyed state.
    `watermark` in microseconds, as `own_times` of operators with an event time of their own; `position` None: the source starts from the
    beginning. `change`: the parts of its state are others than those that were saved.
    """

    url: str
    checkpoint: CheckpointNumber
    watermark: int = MIN_TIME
    position: Any = None
    chains: tuple[RestoredChain, ...] = ()
    keys: RestoredKeys | None = None
    own_times: Mapping[str, int] = field(default_factory=dict)
    change: PartsChange | None = None
