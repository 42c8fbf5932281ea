"""What an interpreter of a job needs from its runtime: workers, and storage. Ray, the local runtime and the simulation have one of each."""

from __future__ import annotations

from typing import Protocol

from ...engine.protocol.ids import WorkerId
from ...scheduler.policies.nodes.cluster_view import ClusterView
from ...scheduler.protocol.effects import Deploy, Spawn, StorageEffect
from ...scheduler.protocol.messages import Command


class Workers(Protocol):
    """Called under the interpreter's lock: nothing here may wait."""

    def tell(self, worker: WorkerId, command: Command) -> None:
        """Send a command; commands to one worker arrive in order."""

    def deploy(self, wanted: Deploy) -> None:
        """Bring up an attempt; then call the interpreter's `ready` for each worker, or `not_deployed`."""

    def spawn(self, wanted: Spawn) -> None:
        """Start workers in addition to the running ones; then call `ready` for each, or `not_spawned`."""

    def retire(self, workers: tuple[WorkerId, ...]) -> None:
        """End the processes of workers that have left."""

    def use_nodes(self, avoid: frozenset[str], prefer: frozenset[str]) -> None:
        """Have no new process on the first, and new ones on the second if there are any."""

    def reserve(self, count: int) -> None:
        """Keep `count` more spare processes ready. Raises NoRoomError where there is no room."""

    def ask_for_room(self, workers: int) -> None:
        """Ask the cluster's autoscaler for room."""

    def view(self, *, nodes: bool) -> ClusterView | None:
        """The cluster as it is now, its nodes only if they are asked for; None where there are none."""


class Storage(Protocol):
    """Checkpoints and sinks."""

    def put(self, effect: StorageEffect) -> None:
        """Carry it out behind those before it; then call the interpreter's `stored` with the answer. Must not wait."""
