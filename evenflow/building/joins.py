"""Makes the joins of two keyed streams."""

from __future__ import annotations

from typing import Any, Literal, get_args

from ..engine.errors import FlowError
from ..engine.functions.error_policy import OnError, check_on_error
from ..engine.functions.keyed_function import CoKeyedFunction, KeyedFunction
from ..engine.functions.rows_encoder import SchemaLike, arrow_schema
from ..engine.functions.state_migration import check_state_version
from ..engine.functions.state_types import check_states
from ..engine.functions.user_function import check_function, check_open
from ..engine.joins.join_columns import How
from ..engine.joins.sides import key_names
from ..engine.joins.within import Always, Between
from ..engine.operators.joins.co_group import CoGroup
from ..engine.operators.joins.join import Join
from ..engine.operators.joins.join_asof import JoinAsof
from ..engine.operators.joins.window_join import WindowJoin
from ..engine.operators.processing.co_process import CoProcess
from ..engine.time.duration import Duration, microseconds
from ..engine.time.sessions import SessionWindows
from ..engine.time.windows import Windows

KINDS: tuple[str, ...] = get_args(How)


def join(left: tuple[str, ...], right: tuple[str, ...], within: Any, how: How, suffix: str) -> Join | WindowJoin:
    """Make the join of streams with these key columns. Raises FlowError for wrong arguments."""
    _check_keys(left, right)
    _check_suffix("join", suffix)
    if how not in KINDS:
        raise FlowError(f"join(how={how!r}): expected one of {', '.join(KINDS)}")
    if isinstance(within, (Windows, SessionWindows)):
        _check_event_time("join", within)
        return WindowJoin(left, right, within, how, suffix)
    if isinstance(within, (Between, Always)):
        return Join(left, right, within, how, suffix)
    raise FlowError(f'join(..., {within!r:.200}): expected windows such as ef.tumbling("1h"), ef.between("-5m", "5m"), or ef.always()')


def join_asof(
    left: tuple[str, ...], right: tuple[str, ...], how: Literal["left", "inner"], max_age: Duration | None, suffix: str
) -> JoinAsof:
    """Make the as-of join of streams with these key columns. Raises FlowError for wrong arguments."""
    _check_keys(left, right)
    _check_suffix("join_asof", suffix)
    if how not in ("left", "inner"):
        raise FlowError(f"join_asof(how={how!r}): expected left or inner")
    return JoinAsof(left, right, how, None if max_age is None else microseconds(max_age, "join_asof(max_age=...)"), suffix)


def co_process(left: tuple[str, ...], right: tuple[str, ...], function: Any, schema: SchemaLike, on_error: OnError) -> CoProcess:
    """Make `co_process` of streams with these key columns. Raises FlowError for wrong arguments."""
    _check_keys(left, right)
    if not isinstance(function, CoKeyedFunction):
        kind = " (it is a KeyedFunction, which has one input)" if isinstance(function, KeyedFunction) else ""
        raise FlowError(f"co_process({function!r:.200}): expected an instance of a class derived from ef.CoKeyedFunction{kind}")
    name = type(function).__name__
    for method, what in (("on_left", "row"), ("on_right", "row"), ("on_timer", "time")):
        check_function(getattr(function, method), f"{name}.{method}", "key", what, "context", yields=True)
    check_open(type(function), name)
    check_states(type(function), "co_process")
    check_state_version(function, "co_process")
    fields, policy = arrow_schema(schema, "co_process"), check_on_error(on_error, "co_process")
    return CoProcess(key_names(len(left)), function, fields, policy, left_keys=left, right_keys=right)


def co_group(left: tuple[str, ...], right: tuple[str, ...], windows: Any, function: Any, schema: SchemaLike, on_error: OnError) -> CoGroup:
    """Make `co_group` of streams with these key columns. Raises FlowError for wrong arguments."""
    _check_keys(left, right)
    if not isinstance(windows, (Windows, SessionWindows)):
        choice = 'ef.tumbling("1h"), ef.sliding("1h", every="5m") or ef.session("10m")'
        raise FlowError(f"co_group(..., {windows!r:.200}): expected windows of event time: {choice}")
    _check_event_time("co_group", windows)
    check_function(function, "co_group", "key", "window", "left_rows", "right_rows", yields=True, classes=True)
    return CoGroup(left, right, windows, function, arrow_schema(schema, "co_group"), check_on_error(on_error, "co_group"))


def _check_event_time(method: str, windows: Windows | SessionWindows) -> None:
    if windows.time != "event":
        raise FlowError(
            f'{method}(...) with windows of time="processing": both streams must have event time; call .with_arrival_time() on each, '
            "and join by windows of event time"
        )


def _check_keys(left: tuple[str, ...], right: tuple[str, ...]) -> None:
    if len(left) != len(right):
        raise FlowError(
            f"a join of streams with {len(left)} and {len(right)} key columns ({', '.join(left)}; {', '.join(right)}): "
            "key both by the same number of columns"
        )


def _check_suffix(method: str, suffix: Any) -> None:
    if not isinstance(suffix, str) or not suffix:
        raise FlowError(f"{method}(suffix={suffix!r}): expected a text, which is added to columns of right whose name is taken")
