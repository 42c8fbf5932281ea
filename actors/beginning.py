"""What a job begins from, and what it goes on from when the checkpoint that it would go on from is damaged.

Invariant: a job that began from a savepoint never begins from nothing; if it needs the savepoint and that is damaged, it ends.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from ..engine.plan.physical import Plan
from ..scheduler.manifest import Manifest
from ..state.errors import CorruptCheckpointError, CorruptStateError
from .saved_state import SAVEPOINT, SavedState

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Savepoint:
    """What a job begins from. `allow_lost_state`: state of operators that the flow no longer has is left behind."""

    path: str
    allow_lost_state: bool = False


class Beginning:
    """`savepoint`: None for a job that begins from nothing."""

    def __init__(self, saved: SavedState, savepoint: Savepoint | None) -> None:
        self._saved, self._savepoint = saved, savepoint

    def manifest(self, plan: Plan) -> Manifest | None:
        """The savepoint's. Raises FlowError if it can't be read, or state of it fits nowhere."""
        if self._savepoint is None:
            return None
        return self._saved.open_savepoint(self._savepoint.path, plan, allow_lost=self._savepoint.allow_lost_state)

    def instead_of(self, damaged: CorruptCheckpointError, plan: Plan) -> Manifest | None:
        """The checkpoint before it, or else what the job began from, if anything. Raises CorruptStateError if that is damaged."""
        if damaged.checkpoint == SAVEPOINT and self._savepoint is not None:
            raise CorruptStateError(f"job `{plan.name}` can't begin from {self._savepoint.path}: {damaged.problem}")
        manifest = self._saved.newest(below=damaged.checkpoint)
        if manifest is not None:
            instead = f"checkpoint {manifest.checkpoint}"
        else:
            manifest = self.manifest(plan)
            instead = "the beginning" if self._savepoint is None else self._savepoint.path
        _LOG.warning("job `%s`: %s; it goes on from %s", plan.name, damaged, instead)
        return manifest
