"""The declared types of a function's states: their check when the flow is written, and their description in checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...state.packing import first_foreign
from ..errors import FlowError
from ..state_description import DECLARED_TYPE, StateDescription
from ..state_version import StateVersion
from ..typed_rows.field_types import UnfitError
from ..typed_rows.row_classes import UnsupportedError, shown_annotation
from ..typed_states.state_annotations import SUPPORTED, value_type
from ..typed_states.suggestion import annotation_for
from ..typed_states.value_types import ValueType
from .declared_states import KeyState, MapState, ValueState, states_of
from .keyed_function import TimedFunction
from .state_migration import version_of


def value_types(function: type) -> dict[str, ValueType]:
    """Return the type of what is stored for each state that has a declared type, by name."""
    return {name: stored for name, state in states_of(function).items() if (stored := state.stored) is not None}


def check_states(function: type, method: str) -> None:
    """Raise FlowError, naming the method, the state and the annotation, for a declared type that can't be saved."""
    for name, state in states_of(function).items():
        try:
            item, _ = state.item, state.stored
        except UnsupportedError as error:
            raise _unsupported(f"{method}({function.__name__}()): the state `{name}`", _shown(state), error) from error
        if item is not None and isinstance(state, ValueState) and state.default is not None:
            try:
                item.plain(state.default)
            except UnfitError as error:
                raise FlowError(f"{method}({function.__name__}()): the default of the state `{name}`: {error}") from error


def checked_type(annotation: Any, method: str) -> ValueType | None:
    """Return the type of an annotation, None without one. Raises FlowError, naming the method, if it can't be saved."""
    try:
        return None if annotation is None else value_type(annotation)
    except UnsupportedError as error:
        raise _unsupported(method, f"state={shown_annotation(annotation)}", error) from error


def described(kind: str, traits: Mapping[str, str], function: type[TimedFunction]) -> StateDescription:
    """Describe the states of a function: their kinds, and the fields and elements of declared types."""
    parts, fields = dict[str, str](), dict[str, bool]()
    for name, state in states_of(function).items():
        if state.item is None or state.stored is None:
            parts[name] = state.kind
            continue
        parts[name] = f"value of {state.item.text}" if isinstance(state, ValueState) else f"typed {state.kind}"
        _add(parts, fields, name, state.stored)
    return StateDescription(kind, traits, parts, "state", fields=fields, version=version_of(function))


def described_type(kind: str, traits: Mapping[str, str], declared: ValueType | None, version: StateVersion) -> StateDescription:
    """Describe a state that is one value per key, with or without a declared type."""
    if declared is None:
        return StateDescription(kind, traits, version=version)
    parts, fields = {"state": f"value of {declared.text}"}, dict[str, bool]()
    _add(parts, fields, "state", declared)
    return StateDescription(kind, {**traits, DECLARED_TYPE: declared.text}, parts, "state", fields=fields, version=version)


def declaration(function: type, name: str, value: Any) -> str | None:
    """Return the declaration with which a value of a state can be saved; None if none helps."""
    state = states_of(function).get(name)
    if state is None:
        return None
    if not isinstance(state, ValueState) and value:
        value = next((each for each in (value.values() if isinstance(value, dict) else value) if first_foreign([each]) is not None), None)
    annotation = annotation_for(value)
    return None if annotation is None else f"{name} = ef.{state.kind}_state(type={annotation})"


def _add(parts: dict[str, str], fields: dict[str, bool], name: str, declared: ValueType) -> None:
    for part in declared.parts(name):
        parts[part.path], fields[part.path] = part.text, part.default


def _unsupported(where: str, given: str, error: Exception) -> FlowError:
    return FlowError(f"{where}: {given} is not supported ({error}); use {SUPPORTED}")


def _shown(state: KeyState) -> str:
    types = {"keys": state.keys if isinstance(state, MapState) else None, "type": state.annotation}
    return ", ".join(f"{name}={shown_annotation(each)}" for name, each in types.items() if each is not None)
