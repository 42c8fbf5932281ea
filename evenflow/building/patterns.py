"""Makes the operator of `KeyedStream.pattern`."""

from __future__ import annotations

from typing import Any

from ..engine.errors import FlowError
from ..engine.operators.processing.match_pattern import MatchPattern
from ..engine.patterns.matched import END, START
from ..engine.patterns.pattern import make_pattern
from ..engine.time.duration import Duration
from ..engine.typed_rows.row_type import RowType


def make_match_pattern(keys: tuple[str, ...], steps: Any, within: Duration, skip: Any, rows: RowType | None = None) -> MatchPattern:
    """Make `pattern`. Raises FlowError for wrong steps, and for a step with the name of another column of its results."""
    pattern = make_pattern(steps, within, skip)
    taken = next((step.name for step in pattern.steps if step.name in (*keys, START, END)), None)
    if taken is not None:
        raise FlowError(f"pattern: the matches have a column {taken!r} already: give that step another name")
    return MatchPattern(keys, pattern, rows)
