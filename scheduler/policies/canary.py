"""The decision on a canary: does new code do as well as old code, by the windows of the workers that run them side by side?

Pure. It compares what both versions do with a record, never absolute figures: the canary has only a small part of the records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..load.batch_costs import BatchCosts
from ..load.window import WorkerWindow

ENOUGH_ROWS = 200
"""The rows that each version must have processed before their times are compared: fewer say too little."""

ENOUGH_WINDOWS = 3
"""The windows of the new code with rows, likewise."""

MOST_WATCHES, MOST_WINDOWS = 2, 5
"""A watch without rows lasts at most so many times as long as it should, and at least so many windows longer."""

NOTICEABLE = 20e-6
"""Seconds more for a record below which the new code is not called slower: such differences come from small batches."""


@dataclass(frozen=True, slots=True)
class VersionFigures:
    """The work of one version in some windows: `rows` in and `rows_out` (None if the stage has no other behind it), `errors` (records
    that they refused), useful `seconds`, the bytes of their state at the end, and the `costs` of their batches.
    """

    rows: int = 0
    rows_out: int | None = None
    errors: int = 0
    seconds: float = 0.0
    state_bytes: int = 0
    windows: int = 0
    costs: BatchCosts = field(default_factory=BatchCosts)

    @staticmethod
    def of(workers: Iterable[Sequence[WorkerWindow]], since: float, *, sends: bool) -> VersionFigures:
        """Add the windows of several workers up that begin at `since` or later; those of each are ordered, the oldest first.

        `sends`: another stage gets their rows.
        """
        histories = list(workers)
        several = [seen for windows in histories if (seen := [window for window in windows if window.start >= since])]
        every = [window for windows in several for window in windows]
        before = [earlier[-1].skipped_records for windows in histories if (earlier := [w for w in windows if w.start < since])]
        return VersionFigures(
            sum(window.rows_in for window in every),
            sum(window.rows_out for window in every) if sends else None,
            sum(windows[-1].skipped_records for windows in several) - sum(before),
            sum(window.useful for window in every),
            sum(windows[-1].state_bytes for windows in several),
            sum(window.rows_in > 0 for window in every),
            sum((window.costs for window in every), BatchCosts()),
        )

    @property
    def microseconds(self) -> float | None:
        """Useful time per record in microseconds, None without records."""
        return self.seconds / self.rows * 1e6 if self.rows else None

    @property
    def selectivity(self) -> float | None:
        """Rows out per row in, None without records, or if no other stage gets the rows."""
        return self.rows_out / self.rows if self.rows and self.rows_out is not None else None


@dataclass(frozen=True, slots=True)
class StageComparison:
    """The work of the old and the new code of a stage, side by side."""

    operator: str
    old: VersionFigures
    new: VersionFigures


def objection(compared: StageComparison, max_errors: int, max_slowdown: float) -> str | None:
    """Return why the new code must be taken back, None if nothing speaks against it so far.

    >>> old = VersionFigures(rows=9_500, errors=0, seconds=0.5, windows=10)
    >>> objection(StageComparison("price", old, VersionFigures(rows=500, errors=3, seconds=0.03, windows=10)), 0, 2.0)
    'operator `price`: the new code refused 3 of 500 records, the old code 0 of 9500'
    """
    old, new = compared.old, compared.new
    usual = 2 * old.errors / old.rows * new.rows if old.rows else 0.0
    if new.errors > max_errors + usual:
        counts = f"{new.errors} of {new.rows} records, the old code {old.errors} of {old.rows}"
        return f"operator `{compared.operator}`: the new code refused {counts}"
    if not old.costs.batches or not new.costs.rows or min(old.rows, new.rows) < ENOUGH_ROWS or new.windows < ENOUGH_WINDOWS:
        return None
    rows = new.costs.rows / new.costs.batches
    taken, usual = new.costs.mean_at_least, old.costs.at_most(rows)
    if taken > max_slowdown * usual and taken - usual > NOTICEABLE * rows:
        times = f"{taken * 1e3:.2f} ms for a batch of {rows:.0f} records, the old code at most {usual * 1e3:.2f} ms"
        return f"operator `{compared.operator}`: the new code takes at least {times}"
    return None


def longest_watch(watch: float, window: float) -> float:
    """Return the seconds after which a watch without rows is given up; `window`: seconds between two reports of a worker."""
    return max(MOST_WATCHES * watch, watch + MOST_WINDOWS * window)


def unwatched(compared: StageComparison, seconds: float, *, is_source: bool, is_keyed: bool) -> str:
    """Return why new code that had no rows in its watch of so many seconds must be taken back, and what to do.

    >>> print(unwatched(StageComparison("price", VersionFigures(), VersionFigures()), 240.0, is_source=False, is_keyed=True))
    operator `price`: no rows came in 240 s, so the new code showed nothing: watch it when there are some, or say canary=0
    """
    rows = compared.old.rows
    if not rows:
        problem, advice = f"no rows came in {seconds:.0f} s", "watch it when there are some"
    else:
        problem = f"its canary had none of {rows} rows in {seconds:.0f} s"
        advice = "name `canary_keys` that have rows, or give it a larger `canary`" if is_keyed else "watch it for longer"
        if is_source:
            advice = "scale the source to fewer workers than it has splits, so that the additional one has a split to read"
    return f"operator `{compared.operator}`: {problem}, so the new code showed nothing: {advice}, or say canary=0"
