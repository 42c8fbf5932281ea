"""The ports through which a job's interpreter uses its runtime: workers and storage. Ray, the local runtime and the simulation
implement them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ...engine.protocol.ids import WorkerId
from ...scheduler.load.long_call import LongCall
from ...scheduler.policies.nodes.placement import ClusterView
from ...scheduler.protocol.effects import Deploy, Spawn, StorageEffect
from ...scheduler.protocol.messages import Command


class Workers(Protocol):
    """The worker processes of a job. Called under the interpreter's lock: no method may wait."""

    def tell(self, worker: WorkerId, command: Command) -> None:
        """Send a command; commands to one worker arrive in order."""

    def deploy(self, wanted: Deploy) -> None:
        """Deploy an attempt; then call the interpreter's `ready` for each worker, or `not_deployed`."""

    def spawn(self, wanted: Spawn) -> None:
        """Start workers in addition to the running ones; then call `ready` for each, or `not_spawned`."""

    def retire(self, workers: tuple[WorkerId, ...]) -> None:
        """End the processes of workers that have left."""

    def use_nodes(self, avoid: frozenset[str], prefer: frozenset[str]) -> None:
        """Start new processes on no node in `avoid`, and on a node in `prefer` if possible."""

    def reserve(self, workers: Sequence[WorkerId], *, hurry: bool) -> None:
        """Keep more spare processes ready, with which these workers are to go on; started one after the other unless in a `hurry`.

        Raises NoRoomError if there is no room for them.
        """

    def ask_for_room(self, nodes: int) -> None:
        """Ask the cluster's autoscaler for nodes; 0 withdraws the request."""

    def leave_node(self) -> None:
        """End the coordinator's process, so that another begins elsewhere."""

    def view(self, *, oldest: float | None) -> ClusterView | None:
        """Return the present cluster, with a list of nodes at most `oldest` seconds old, None: without one. None without a cluster."""

    def long_calls(self) -> Mapping[WorkerId, LongCall]:
        """Return the workers whose threads have been in one call for long, also of a user's function."""


class Storage(Protocol):
    """The storage of checkpoints and the commits of sinks."""

    def put(self, effect: StorageEffect) -> None:
        """Carry out an effect after the earlier ones; then call the interpreter's `stored` with the answer. Must not wait."""
