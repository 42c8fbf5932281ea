"""The base of operators, sources and sinks: descriptions whose settings can be compared with those of another program."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any


class Configured:
    """A description by its settings."""

    def given_settings(self) -> dict[str, Any]:
        """Return the settings that the program gave, by name: by default all attributes.

        Leave out what the engine or `start` sets, such as the id of a run or a list of files: it differs from run to run.
        """
        return attributes(self)

    def settings_without(self, *names: str) -> dict[str, Any]:
        """Return all attributes except those with these names."""
        return {name: value for name, value in attributes(self).items() if name not in names}


def attributes(value: object) -> dict[str, Any]:
    """Return the attributes of an object without values that properties cache, by name."""
    return {name: found for name, found in _attributes(value) if not isinstance(getattr(type(value), name, None), cached_property)}


def _attributes(value: object) -> Iterator[tuple[str, Any]]:
    yield from getattr(value, "__dict__", {}).items()
    for owner in type(value).__mro__:
        slots = owner.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                yield name, getattr(value, name)
