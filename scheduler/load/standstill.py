"""Decides what a job waits for: the causes at the end of each chain of waits, from a snapshot of facts.

A worker that waits for another's credit is no cause: the other one is, or what that one waits for. A job whose sources have
nothing to read waits for input, and for nothing else.

>>> facts = Facts(still=9.0, calls={WorkerId("score-1"): LongCall(8.0, "score", ("score (job.py:7)",))})
>>> [wait.text for wait in waits(facts)]
['operator `score` (worker score-1): score (job.py:7) has not returned for 8 s']
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ...engine.protocol.ids import CheckpointNumber, WorkerId, stage_of
from .long_call import LONG_SECONDS, LongCall
from .wait import NO_WORKER, Wait, WaitKind

MOST = 5
"""The most causes that are named; waits for nodes come in addition."""


@dataclass(frozen=True, slots=True)
class PendingSave:
    """A checkpoint under way. `waits_for`: the workers that it has not passed, upstream first; `saving`: its manifest is being
    written.
    """

    number: CheckpointNumber
    seconds: float
    waits_for: tuple[WorkerId, ...] = ()
    saving: bool = False


@dataclass(frozen=True, slots=True)
class PendingCommit:
    """A commit under way, with the sinks that have output in it."""

    number: CheckpointNumber
    seconds: float
    sinks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PendingChange:
    """A change of keys or workers of `operator` that pauses the stream."""

    operator: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts about a job.

    `still`: seconds since any worker took or sent rows. `calls`: the long calls of workers. `blocked`: the receivers whose credit
    each worker waits for. `silent`: workers without a report, and for how many seconds. `idle`: the source workers that could
    read but return no rows, with the unread rows where that is known. `held`: the inputs that hold event time back. `nodes`: the waits
    for nodes that come or go.
    """

    still: float
    calls: Mapping[WorkerId, LongCall] = field(default_factory=dict)
    blocked: Mapping[WorkerId, tuple[WorkerId, ...]] = field(default_factory=dict)
    silent: Mapping[WorkerId, float] = field(default_factory=dict)
    idle: Mapping[WorkerId, int | None] = field(default_factory=dict)
    held: tuple[Wait, ...] = ()
    nodes: tuple[Wait, ...] = ()
    change: PendingChange | None = None
    checkpoint: PendingSave | None = None
    commit: PendingCommit | None = None


def waits(facts: Facts) -> tuple[Wait, ...]:
    """Return what the job waits for, the strongest cause first.

    Long calls, inputs that hold event time back, and waits for nodes are named even while rows are processed elsewhere, the others
    only once the job stands still.
    """
    found = list(_calls(facts))
    if facts.still >= LONG_SECONDS:
        found = found or list(_protocol(facts)) or list(_credit(facts)) or list(_silent(facts))
        return (*found, *facts.held, *_idle(facts))[:MOST] + facts.nodes
    return (*found, *facts.held)[:MOST] + facts.nodes


def _calls(facts: Facts) -> Iterator[Wait]:
    for worker, call in sorted(facts.calls.items(), key=lambda item: -item[1].seconds):
        operator, for_ = call.operator or stage_of(worker), f"for {call.seconds:.0f} s"
        if call.answered:
            what = call.stack[0] if call.stack else "a call"
            text = f"operator `{operator}` (worker {worker}): {what} has not returned {for_}"
            yield Wait(WaitKind.FUNCTION, text, call.seconds, operator, worker, stack=call.stack)
        else:
            why = "its process is stopped, or a function keeps Python's interpreter lock"
            yield Wait(WaitKind.WORKER, f"worker {worker} has not answered {for_}: {why}", call.seconds, operator, worker)


def _protocol(facts: Facts) -> Iterator[Wait]:
    """Yield the change, the checkpoint or the commit that the job waits for."""
    change, save, commit = facts.change, facts.checkpoint, facts.commit
    if change is not None and change.seconds >= LONG_SECONDS:
        text = f"a move of keys or workers of `{change.operator}` has paused the stream for {change.seconds:.0f} s"
        yield Wait(WaitKind.MOVE, text, change.seconds, change.operator)
    elif save is not None and save.seconds >= LONG_SECONDS:
        first = save.waits_for[0] if save.waits_for and not save.saving else NO_WORKER
        others = f" and {len(save.waits_for) - 1} more" * (len(save.waits_for) > 1)
        pending = f"its part of worker {first}{others}" if first else "its manifest to be written"
        text = f"checkpoint {save.number} has waited {save.seconds:.0f} s for {pending}"
        yield Wait(WaitKind.CHECKPOINT, text, save.seconds, stage_of(first), first)
    elif commit is not None and commit.seconds >= LONG_SECONDS:
        sinks = ", ".join(f"`{sink}`" for sink in commit.sinks)
        text = f"the commit of checkpoint {commit.number}{f' to {sinks}' if sinks else ''} has not ended for {commit.seconds:.0f} s"
        yield Wait(WaitKind.COMMIT, text, commit.seconds, commit.sinks[0] if len(commit.sinks) == 1 else "")


def _credit(facts: Facts) -> Iterator[Wait]:
    """Yield the workers at the ends of the chains of waits for credit."""
    senders: dict[WorkerId, list[WorkerId]] = {}
    for sender, receivers in facts.blocked.items():
        for receiver in receivers:
            senders.setdefault(receiver, []).append(sender)
    ends = {receiver: waiting for receiver, waiting in senders.items() if receiver not in facts.blocked}
    for receiver, waiting in sorted((ends or senders).items()):
        those = f"worker {waiting[0]} has" if len(waiting) == 1 else f"workers {', '.join(sorted(waiting))} have"
        text = f"{those} waited {facts.still:.0f} s for credit of worker {receiver}, which takes no rows"
        yield Wait(WaitKind.CREDIT, text, facts.still, stage_of(receiver), receiver)


def _silent(facts: Facts) -> Iterator[Wait]:
    for worker, seconds in sorted(facts.silent.items(), key=lambda item: -item[1]):
        yield Wait(WaitKind.WORKER, f"worker {worker} has reported nothing for {seconds:.0f} s", seconds, stage_of(worker), worker)


def _idle(facts: Facts) -> Iterator[Wait]:
    sources: dict[str, list[WorkerId]] = {}
    for worker in facts.idle:
        sources.setdefault(stage_of(worker), []).append(worker)
    for source, workers in sources.items():
        unread = sum(facts.idle[worker] or 0 for worker in workers)
        what = f"has {unread:,} unread records and has returned none" if unread else "has no records to read, and has returned none"
        text = f"source `{source}` {what} for {facts.still:.0f} s"
        yield Wait(WaitKind.INPUT, text, facts.still, source, workers[0] if len(workers) == 1 else NO_WORKER)
