"""Inputs that give no rows and hold event time back while others advance: windows and timers wait for them, perhaps forever.

An input is a split of a source's worker (a partition) if the source reports its splits, else the worker. It is called quiet only
if other inputs of the same keyed operator advanced meanwhile: a stream that is slow as a whole is no problem.

Invariant: an input that gives a row, ends, or counts as idle is no longer named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...engine.operators.rows.read import Read
from ...engine.plan.physical import Plan
from ...engine.protocol.ids import WorkerId, stage_of
from .wait import Wait, WaitKind
from .window import WorkerWindow

QUIET_SECONDS = 10.0
"""Seconds without a row after which an input is named."""

AHEAD = 1_000_000
"""Microseconds of event time by which the others must be ahead."""

GOING_ON = 5
"""Windows in which one of the others must have given rows since the input's last."""

NAMED = 5
"""Inputs that are named."""

_BUSY = 0.1
"""The part of a window for which a worker waits for credit if it isn't its source that is quiet."""

InputKey = tuple[WorkerId, str]
"""A worker and one of its splits; the split is empty if the source doesn't report any."""


@dataclass(slots=True)
class _Input:
    """`gave_at`: seconds since the epoch of its last row. `time`: its newest event time, or its worker's watermark (microseconds).

    `gave`: the ends of its newest windows with rows.
    """

    gave_at: float
    time: int | None = None
    gave: tuple[float, ...] = ()
    idle: bool = False


class QuietInputs:
    """The quiet inputs of one job, found in the windows of its workers. Without metrics it finds none."""

    def __init__(self) -> None:
        self._inputs: dict[InputKey, _Input] = {}
        self.held: tuple[Wait, ...] = ()
        """The inputs that hold event time back now."""

    @property
    def problems(self) -> tuple[str, ...]:
        """The inputs that hold event time back now, in words."""
        return tuple(wait.text for wait in self.held)

    def reset(self) -> None:
        """Forget the previous attempt."""
        self._inputs.clear()
        self.held = ()

    def add(self, window: WorkerWindow) -> None:
        """Take a window of a worker that reads a source."""
        at, busy = window.start + window.length, window.wait_credit > _BUSY * window.length
        splits = [(split.split, split.newest, split.idle, bool(split.lag)) for split in window.splits]
        for name, time, idle, more in splits or [("", window.watermark, False, False)]:
            key = window.worker, name
            found = self._inputs.setdefault(key, _Input(at))
            gave = found.time != time or (not splits and window.rows_in > 0)
            if gave or busy or more:
                found.gave_at = at
            if gave:
                found.gave = (*found.gave[-GOING_ON:], at)
            found.time, found.idle = time, idle
        here = {name for name, *_ in splits} or {""}
        for key in [key for key in self._inputs if key[0] == window.worker and key[1] not in here]:
            del self._inputs[key]

    def find(self, plan: Plan, finished: Iterable[WorkerId], now: float) -> list[str]:
        """Find the inputs that hold event time back. Return those that the previous call did not report."""
        gone, before, found = set(finished), {(wait.worker, wait.split) for wait in self.held}, list[Wait]()
        for stage, sources in meeting(plan).items():
            inputs = {
                key: known
                for source in sources
                for worker in plan.stage_of(source).workers
                for key, known in self._inputs.items()
                if key[0] == worker and worker not in gone and not known.idle
            }
            found += self._held(plan, stage, inputs, now)
        self.held = tuple(found)[:NAMED]
        return [wait.text for wait in self.held if (wait.worker, wait.split) not in before]

    def _held(self, plan: Plan, stage: str, inputs: Mapping[InputKey, _Input], now: float) -> Iterable[Wait]:
        for (worker, split), known in inputs.items():
            quiet = now - known.gave_at
            others = [
                other.time
                for key, other in inputs.items()
                if key != (worker, split) and other.time is not None and sum(at > known.gave_at for at in other.gave) >= GOING_ON
            ]
            if quiet >= QUIET_SECONDS and others and (known.time is None or max(others) > known.time + AHEAD):
                source = stage_of(worker)
                head = plan.stage_of(source).chain[0]
                assert isinstance(head.operator, Read)
                which = f"{head.operator.source.split_word} {split} of source" if split else "source"
                text = (
                    f"{which} `{head.name}` (worker {worker}) has given no row for {quiet:.0f} s and holds event time back: windows and "
                    f"timers of `{stage}` wait for it, while other inputs advance{head.operator.source.idle_advice}"
                )
                yield Wait(WaitKind.WATERMARK, text, quiet, head.name, worker, split)


def meeting(plan: Plan) -> dict[str, list[str]]:
    """Return the timed sources whose rows reach each stage with keyed state; of stages with the same sources, only the first."""
    behind: dict[str, set[str]] = {}
    for source in plan.stages:
        if isinstance(head := source.chain[0].operator, Read) and head.source.timed is not False:
            ways = [source.name]
            while ways:
                stage = plan.stage_of(ways.pop())
                if stage.is_keyed:
                    behind.setdefault(stage.name, set()).add(source.name)
                ways += [output.target for output in stage.outputs]
    met: dict[str, list[str]] = {}
    for stage_name, sources in behind.items():
        if sorted(sources) not in met.values():
            met[stage_name] = sorted(sources)
    return met
