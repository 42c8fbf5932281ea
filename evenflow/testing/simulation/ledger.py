"""The visible output of all coordinators of a simulated job, including those declared lost: like a folder that readers see.

Invariant: all coordinators commit a checkpoint with the same rows, and the visible rows in the end are those of the job's own list.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...connectors.python.list_sink import to_list
from .network import SimulationError


class Ledger:
    """Committed rows by checkpoint and sink."""

    def __init__(self) -> None:
        self._shown: dict[int, dict[str, list[Any]]] = {}
        self._taken_back: set[int] = set()

    def commit(self, checkpoint: int, committables: Mapping[str, list[Any]]) -> None:
        """Make rows visible, unless their checkpoint was retracted. Raises SimulationError if it was committed with other rows."""
        found = {name: list(items) for name, items in committables.items() if items}
        if checkpoint in self._taken_back or not found:
            return
        if self._shown.setdefault(checkpoint, found) != found:
            raise SimulationError(f"checkpoint {checkpoint} was committed with other rows before")

    def take_back(self, after: int) -> None:
        """Hide all rows committed after checkpoint `after`."""
        later = {checkpoint for checkpoint in self._shown if checkpoint > after}
        self._taken_back |= later
        for checkpoint in later:
            del self._shown[checkpoint]

    def rows(self, sink: str) -> list[dict[str, Any]]:
        """Return the visible rows, in the order of the checkpoints."""
        found: list[dict[str, Any]] = []
        reader = to_list(found)
        for checkpoint in sorted(self._shown):
            for payload in reader.commit(checkpoint, self._shown[checkpoint].get(sink, [])):
                reader.deliver(payload)
        return found
