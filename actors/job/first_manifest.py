"""The manifest that a job begins from, and the one that replaces a damaged checkpoint.

Invariant: a job that began from a savepoint never begins from nothing; if it needs the savepoint and that is damaged, it ends.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from ...engine.plan.physical import Plan
from ...engine.protocol.ids import CheckpointNumber
from ...scheduler.protocol.manifest import Manifest
from ...scheduler.record.restoring.fitting import Allowed
from ...state.errors import CorruptStateError
from ..task.saved_state import SAVEPOINT, SavedState, fitting_manifest

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Savepoint:
    """The savepoint that a job begins from, and the allowed differences to its state."""

    path: str
    allowed: Allowed = field(default_factory=Allowed)

    def check(self, plan: Plan) -> None:
        """Raise FlowError if it can't be read, or `plan` can't restore it."""
        fitting_manifest(self.path, plan, self.allowed)


class FirstManifest:
    """The first manifest of a job. `savepoint`: None for a job that begins from nothing."""

    def __init__(self, saved: SavedState, savepoint: Savepoint | None) -> None:
        self._saved, self._savepoint = saved, savepoint

    def manifest(self, plan: Plan) -> Manifest | None:
        """Return the savepoint's manifest. Raises FlowError if it can't be read, or if some of its state fits no operator."""
        if self._savepoint is None:
            return None
        return self._saved.open_savepoint(self._savepoint.path, plan, self._savepoint.allowed)

    def instead_of(self, checkpoint: CheckpointNumber, problem: str, plan: Plan) -> Manifest | None:
        """Return the manifest before `checkpoint`, which is damaged, or else the one that the job began from, perhaps None.

        Raises CorruptStateError if that is the damaged one.
        """
        if checkpoint == SAVEPOINT and self._savepoint is not None:
            raise CorruptStateError(f"job `{plan.name}` can't begin from {self._savepoint.path}: {problem}")
        manifest = self._saved.newest(below=checkpoint)
        if manifest is not None:
            instead = f"checkpoint {manifest.checkpoint}"
        else:
            manifest = self.manifest(plan)
            instead = "the beginning" if self._savepoint is None else self._savepoint.path
        _LOG.warning("job `%s`: checkpoint %d can't be restored: %s; it continues from %s", plan.name, checkpoint, problem, instead)
        return manifest
