"""Checks of single settings. Each raises FlowError with the group, the setting and the expected value.

Every worker loads this module with its settings, so it imports no balancer.
"""

from __future__ import annotations

from typing import Any

from ..engine.errors import FlowError
from ..engine.time.duration import seconds

LEAST_POSITIVE = 1e-9
"""The smallest number that counts as more than 0."""

MOST = 1e18
"""The largest number of a setting: products of a few stay finite."""


def given(group: object, *names: str) -> list[str]:
    """Return the names of these settings that are not None, for the checks of optional ones."""
    return [name for name in names if getattr(group, name) is not None]


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


def between(group: object, least: float, most: float, *names: str) -> None:
    """Check that these settings are numbers from `least` to `most`."""
    for name in names:
        value = getattr(group, name)
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not least <= value <= most:
            raise refusal(group, name, f"a number from {least:g} to {most:g}")


def share(group: object, *names: str) -> None:
    """Check that these settings are parts of a whole, from 0 to 1."""
    between(group, 0, 1, *names)


def positive(group: object, *names: str) -> None:
    """Check that these settings are finite numbers over 0."""
    between(group, LEAST_POSITIVE, MOST, *names)


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
    """Check that these settings are durations."""
    for name in names:
        if seconds(getattr(group, name), f"{type(group).__name__}: {name}") == 0 and longer_than_zero:
            raise FlowError(f"{type(group).__name__}: {name} must be longer than zero")


def refusal(group: object, name: str, expected: str) -> FlowError:
    """Return an error that names the setting, its value and the expected one."""
    return FlowError(f"{type(group).__name__}: {name} is {getattr(group, name)!r:.200}; expected {expected}")
