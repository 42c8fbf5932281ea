"""The means of faults in which something overtakes rows that an operator holds back."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.engine.task.core import TaskCore


def do_not_settle_in(patch: pytest.MonkeyPatch, step: str) -> None:
    """Let a step of the task leave the rows that its operators hold back where they are."""
    take = getattr(TaskCore, step)

    def without_settling(self: Any, *given: Any) -> None:
        settle, self.chain.settle = self.chain.settle, lambda: None
        try:
            take(self, *given)
        finally:
            self.chain.settle = settle

    patch.setattr(TaskCore, step, without_settling)
