"""What scaling a job's nodes asks of a driver that has several: where its workers are, and where those that come are to go."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from ..scheduler.placement import Node, Place


class Cluster(Protocol):
    """What a driver with several nodes offers."""

    def nodes(self) -> Sequence[Node]:
        """Those that are alive, with the job's processes on them."""

    def places(self) -> Mapping[str, Place]:
        """Where each worker is."""

    def avoid(self, nodes: Collection[str]) -> None:
        """These nodes get no process any more, and spares there are ended."""

    def prefer(self, nodes: Collection[str]) -> None:
        """New processes go to these nodes only; if there are none, where the job's strategy says."""

    def reserve(self, count: int) -> None:
        """Start so many spares beyond those that are kept, or end them again. Raises NoRoomError."""

    def reserved(self) -> bool:
        """Whether all spares have started."""

    def ask(self, workers: int) -> None:
        """Ask for room for so many workers more."""
