"""Migration of states by users' functions: `migrate_state` gets plain values that an older version wrote, and its result is checked.

A value that is returned may be of the declared type, or the plain form in which it was given: a dict in place of an object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...state.packing import first_foreign, problem_of
from ..errors import FlowError
from ..keyed_state.kinds.migration import Migration
from ..state_version import LARGEST, StateVersion
from ..typed_rows.field_types import UnfitError
from ..typed_states.value_types import ValueType
from .declared_states import KeyState, ValueState, states_of
from .error_policy import function_name
from .keyed_function import TimedFunction
from .user_function import check_function

MigrateState = Callable[[int, Any], Any]
"""`migrate_state(version, state) -> state`; `version`: that of the code which wrote the state."""


def version_of(function: type[TimedFunction]) -> StateVersion:
    """Return the version of the states that a class declares."""
    renamed = {name: state.renamed_from for name, state in states_of(function).items() if state.renamed_from is not None}
    return StateVersion(function.state_version, function.__name__, _migrates(function), renamed)


def object_version(function: Any, number: int, migrate: MigrateState | None) -> StateVersion:
    """Return the version of the states of a `stateful_map`."""
    return StateVersion(number, function_name(function), migrate is not None)


def check_state_version(function: TimedFunction, method: str) -> None:
    """Raise FlowError for a wrong `state_version`, `migrate_state` or `renamed_from` of a function."""
    kind = type(function)
    place = f"{method}({kind.__name__}())"
    _check_number(kind.state_version, place)
    if _migrates(kind):
        check_function(function.migrate_state, f"{kind.__name__}.migrate_state", "version", "state")
        _check_called(kind.state_version, place)
    states, former = states_of(kind), dict[str, str]()
    for name, state in states.items():
        if state.renamed_from is None:
            continue
        if not isinstance(state.renamed_from, str) or not state.renamed_from.isidentifier():
            raise FlowError(f"{place}: the state `{name}`: renamed_from={state.renamed_from!r:.200}: expected the name of an attribute")
        if state.renamed_from in states:
            raise FlowError(f"{place}: the state `{name}` is renamed from `{state.renamed_from}`, which is a state too: remove one of them")
        if (other := former.setdefault(state.renamed_from, name)) != name:
            raise FlowError(f"{place}: the states `{other}` and `{name}` are both renamed from `{state.renamed_from}`")


def check_object_version(number: Any, migrate: Any, place: str) -> None:
    """Raise FlowError for a wrong `state_version` or `migrate_state` of a `stateful_map`."""
    _check_number(number, place)
    if migrate is not None:
        check_function(migrate, f"{place}: migrate_state", "version", "state")
        _check_called(number, place)


def migration_of(function: TimedFunction) -> Migration:
    """Return the migration of a function's states: from a dict of plain values by name to another."""
    kind = type(function)
    states = states_of(kind)

    def migrate(version: int, values: dict[str, Any]) -> dict[str, Any]:
        bound = vars(function).pop("current", None)  # no state of another key may be read or written
        try:
            returned = function.migrate_state(version, values)
        except AttributeError as error:
            if error.name == "current" and error.obj is function:
                raise UnfitError("it reads or writes a state by `self`: use the dict that it gets, and return one") from error
            raise
        finally:
            if bound is not None:
                function.current = bound
        if type(returned) is not dict:
            raise UnfitError(f"returned {returned!r:.200} ({type(returned).__name__}), expected a dict of states by name")
        unknown = [name for name in returned if name not in states]
        if unknown:
            raise UnfitError(f"returned a state {unknown[0]!r:.200}, and the states of {kind.__name__} are {', '.join(states) or 'none'}")
        plain = {name: _plain_state(states[name], value) for name, value in returned.items()}
        return {name: value for name, value in plain.items() if value or isinstance(states[name], ValueState)}

    return Migration(version_of(kind), migrate if _migrates(kind) else None)


def object_migration(version: StateVersion, migrate: MigrateState | None, declared: ValueType | None) -> Migration:
    """Return the migration of the states of a `stateful_map`, from a plain value to another; None forgets the key."""

    def checked(saved: int, state: Any) -> Any:
        assert migrate is not None
        returned = migrate(saved, state)
        return None if returned is None else _plain(returned, declared, "state")

    return Migration(version, checked if migrate is not None else None)


def _plain_state(state: KeyState, value: Any) -> Any:
    if state.stored is None:
        try:
            value = state.checked(value)
        except TypeError as error:
            raise UnfitError(str(error)) from error
    return _plain(value, state.stored, f"state `{state.name}`")


def _plain(value: Any, declared: ValueType | None, what: str) -> Any:
    """Return a value that `migrate_state` returned as a plain one. Raises UnfitError if it is not of the declared type."""
    if declared is None:
        if first_foreign([value]) is not None:
            raise UnfitError(f"the {what} can't be saved: {problem_of(value, 'the value')}")
        return value
    try:
        return declared.plain(value)
    except UnfitError as error:
        try:
            made = declared.plain(declared.value(value))
        except UnfitError:
            raise UnfitError(f"the {what} is declared as {declared.name}: {error}; as plain values it doesn't fit either") from error
        if (path := _dropped(value, made)) is not None:
            raise UnfitError(f"the {what} is declared as {declared.name}, which has no field {path}: remove it") from error
        return made


def _dropped(given: Any, made: Any) -> str | None:
    """Return the first field of plain values that is not in those made of them."""
    if isinstance(given, Mapping) and isinstance(made, Mapping):
        pairs = [(name, given[name], made[name]) for name in given if name in made]
        if len(pairs) < len(given):
            return repr(next(name for name in given if name not in made))
        return next((path for _, before, after in pairs if (path := _dropped(before, after)) is not None), None)
    if isinstance(given, (list, tuple)) and isinstance(made, (list, tuple)):
        return next((path for before, after in zip(given, made, strict=False) if (path := _dropped(before, after)) is not None), None)
    return None


def _migrates(function: type[TimedFunction]) -> bool:
    return function.migrate_state is not TimedFunction.migrate_state


def _check_number(number: Any, place: str) -> None:
    if type(number) is not int or not 1 <= number <= LARGEST:
        raise FlowError(f"{place}: state_version is {number!r:.200}: expected an int of at least 1, and at most {LARGEST:,}")


def _check_called(number: int, place: str) -> None:
    if number == 1:
        raise FlowError(f"{place}: migrate_state would never be called, because state_version is 1: raise it when the state changes")
