"""Makes `with_time`."""

from __future__ import annotations

from typing import Any

from ..engine.errors import FlowError
from ..engine.functions.error_policy import check_on_error
from ..engine.functions.user_function import check_function
from ..engine.operators.rows.with_time import WithTime
from ..engine.time.duration import Duration, microseconds
from ..engine.time.event_time import EventTime


def make_with_time(time: Any, unit: str, max_delay: Duration, on_error: str) -> WithTime:
    """Raises FlowError for what is neither a column nor a function of a row, an unknown unit, and what is no duration."""
    if not isinstance(time, str):
        check_function(time, "with_time", "row")
    elif not time:
        raise FlowError("with_time(''): expected the name of a column, or a function of (row)")
    try:
        EventTime("time", unit)
    except FlowError as error:
        raise FlowError(f"with_time: {error}") from error
    return WithTime(time, unit, microseconds(max_delay, "with_time(max_delay=...)"), check_on_error(on_error, "with_time"))
