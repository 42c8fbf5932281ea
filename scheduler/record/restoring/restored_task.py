"""The state that one task restores, as plain data: made from a manifest and sent to its worker."""

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
    """The state that one task restores: files of checkpoint `checkpoint` in the store at `url`, and of their rows those that
    `keys` assigns it.

    `chains`: those that may have such rows. `keys.same`: its state is exactly its only chain. `keys` None: it has no keyed state.
    `watermark` in microseconds, as are `own_times`, the event times of operators that keep their own; `position` None: the source
    starts from the beginning. `change`: the parts of its state differ from the saved ones.
    """

    url: str
    checkpoint: CheckpointNumber
    watermark: int = MIN_TIME
    position: Any = None
    chains: tuple[RestoredChain, ...] = ()
    keys: RestoredKeys | None = None
    own_times: Mapping[str, int] = field(default_factory=dict)
    change: PartsChange | None = None
