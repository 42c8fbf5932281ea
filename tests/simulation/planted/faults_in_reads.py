"""Faults in how a key's state is read while keys move. Each breaks a core in a few lines."""

from __future__ import annotations

import pytest

from evenflow.engine.task.handover import Handovers

Patch = pytest.MonkeyPatch


def worker_answers_for_every_key(patch: Patch) -> None:
    patch.setattr(Handovers, "holds", lambda self, hashes, newest: True)


def new_owner_answers_before_the_state_has_arrived(patch: Patch) -> None:
    """Keep only the check of what the worker has given away."""

    def not_left(self, hashes, newest):
        groups = self._operator.context.key_groups
        return self._begun <= newest and not any(move.selects(hashes, groups).any() for move in self._left)

    patch.setattr(Handovers, "holds", not_left)


def old_owner_answers_for_what_it_has_given_away(patch: Patch) -> None:
    holds = Handovers.holds

    def forgetful(self, hashes, newest):
        self._left = []
        return holds(self, hashes, newest)

    patch.setattr(Handovers, "holds", forgetful)


def worker_ahead_of_the_coordinator_answers(patch: Patch) -> None:
    holds = Handovers.holds
    patch.setattr(Handovers, "holds", lambda self, hashes, newest: holds(self, hashes, self._begun))
