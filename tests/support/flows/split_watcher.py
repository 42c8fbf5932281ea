"""Records the split keys of simulated runs."""

from __future__ import annotations

from evenflow.testing.actions.splitting import REASON


class SplitWatcher:
    """An action that does nothing: it remembers how many keys' rows were copied or returned in each run."""

    def __init__(self):
        self.histories = {}

    def __call__(self, world):
        self.histories[id(world)] = world, world.coordinator.core.migrations.history
        return iter(())

    @property
    def rows(self):
        return sum(m.keys_moved for _, history in self.histories.values() for m in history if m.reason == REASON)
