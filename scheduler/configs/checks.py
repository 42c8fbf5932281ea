"""Checks of single settings. Each raises FlowError with the group, the setting and the expected value."""

from __future__ import annotations

from typing import Any

from ...engine.errors import FlowError
from ...engine.time.duration import seconds


def whole(group: object, least: int, *names: str, most: int | None = None) -> None:
    """Check that these settings are whole numbers from `least` to `most`."""
    for name in names:
        value = getattr(group, name)
        if not isinstance(value, int) or isinstance(value, bool) or value < least or (most is not None and value > most):
            bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
            raise refusal(group, name, f"a whole number {bounds}")


def number(group: object, *names: str) -> None:
    """Check that these settings are numbers."""
    for name in names:
        value = getattr(group, name)
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise refusal(group, name, "a number")


def flag(group: object, *names: str) -> None:
    """Check that these settings are True or False."""
    for name in names:
        if not isinstance(getattr(group, name), bool):
            raise refusal(group, name, "True or False")


def choice(group: object, name: str, among: Any) -> None:
    """Check that the setting is one of `among`."""
    if getattr(group, name) not in among:
        raise refusal(group, name, f"one of {', '.join(among)}")


def duration(group: object, *names: str, longer_than_zero: bool = False) -> None:
    """Check that these settings are durations or None."""
    for name in names:
        value = getattr(group, name)
        if value is not None and seconds(value, f"{type(group).__name__}: {name}") == 0 and longer_than_zero:
            raise FlowError(f"{type(group).__name__}: {name} must be longer than zero")


def refusal(group: object, name: str, expected: str) -> FlowError:
    """Return an error that names the setting, its value and the expected one."""
    return FlowError(f"{type(group).__name__}: {name} is {getattr(group, name)!r}; expected {expected}")
