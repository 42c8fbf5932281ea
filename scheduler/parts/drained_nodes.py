"""Nodes that Ray drains and that are not empty: the checkpoints that a job takes before they go, so that little is lost.

Ray ends a drained node at its deadline, empty or not. A checkpoint is taken once half of the time is over, and again after half of each
rest, so that the job never repeats more than about as much as it had time left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..load.wait import Wait, WaitKind
from ..policies.nodes.placement import ClusterView, short
from ..protocol.effects import Warn
from ..record.job_record import JobRecord
from .checkpointing import Checkpointing

SAME_DEADLINE = 1.0
"""Seconds between two deadlines that count as one: they are told by the clocks of different machines."""

LEAST_REST = 1.0
"""Seconds before a deadline after which no checkpoint is begun for it."""


class DrainedNodes:
    """The deadlines of one job's nodes that Ray drains."""

    def __init__(self, job: JobRecord, checkpointing: Checkpointing) -> None:
        self._job, self._checkpointing = job, checkpointing
        self._noticed: dict[str, float] = {}
        self._save_at: dict[str, float] = {}
        self._ends: dict[str, float] = {}
        self._saved = set[str]()

    def look(self, occupied: Iterable[str], cluster: ClusterView, *, saving: bool) -> None:
        """Take a checkpoint if one is due. `occupied`: the drained nodes that the job is still on; `saving`: a move takes one now."""
        job, there = self._job, set(occupied)
        for known in (self._noticed, self._save_at, self._ends):
            for node in known.keys() - there:
                del known[node]
        for node in sorted(there):
            left = cluster.seconds_left.get(node)
            self._noticed.setdefault(node, job.now)
            if left is None:
                continue
            ends, known_end = job.now + left, self._ends.get(node)
            if known_end is None or abs(ends - known_end) > SAME_DEADLINE:
                self._ends[node], self._save_at[node] = ends, job.now + left / 2
            if job.now < self._save_at[node]:
                continue
            self._save_at[node] = job.now + left / 2 if left > LEAST_REST else float("inf")
            if job.config.checkpoint.saves_state and not saving:
                self._save(node, left)

    def waits(self, problems: Mapping[str | None, str]) -> tuple[Wait, ...]:
        """Return the nodes that the job is still to leave; `problems`: why it could not leave some of them the last time."""
        return tuple(self._wait(node, noticed, problems.get(node)) for node, noticed in self._noticed.items())

    def _save(self, node: str, left: float) -> None:
        goes = f"node {short(node)}, which Ray drains, goes in {max(0.0, left):.0f} s"
        self._checkpointing.request(goes)
        if node not in self._saved:
            self._saved.add(node)
            text = "the job is not off it yet. It takes a checkpoint now, from which it continues if the node goes before"
            self._job.emit(Warn(f"job `{self._job.name}`: {goes}, and {text}"))

    def _wait(self, node: str, noticed: float, problem: str | None) -> Wait:
        ends, now = self._ends.get(node), self._job.now
        deadline = "" if ends is None else f" It goes in {max(0.0, ends - now):.0f} s."
        saved = " A checkpoint was taken for it." if node in self._saved else ""
        why = "" if problem is None else f" The last try has failed: {problem}"
        return Wait(WaitKind.NODE, f"the job is leaving node {short(node)}, which Ray drains.{deadline}{saved}{why}", now - noticed)
