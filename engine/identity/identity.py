"""The identity of an operator, a source or a sink: a digest for each of its settings.

>>> from ..operators.rows.map import Map
>>> old, new = identity_of(Map(lambda row: 1)), identity_of(Map(lambda row: 2))
>>> [(change.name, change.is_code) for change in changes(old, new)]
[('function', True)]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..configured import Configured
from .digest import IncomparableError, digest


@dataclass(frozen=True, slots=True)
class Part:
    """The identity of a setting: its digest, and the digest without the user's code. `unknown`: why there is none."""

    whole: bytes = b""
    settings: bytes = b""
    unknown: str | None = None


@dataclass(frozen=True, slots=True)
class Identity:
    """The class of a description, and the identity of each of its settings by name."""

    kind: str
    definition: Part
    parts: Mapping[str, Part]


@dataclass(frozen=True, slots=True)
class Change:
    """A setting that differs. `is_code`: only by the user's code. `why`: a phrase for people."""

    name: str
    is_code: bool
    why: str


def identity_of(described: Configured) -> Identity:
    """Return the identity of an operator, a source or a sink, to be called in the process of the program that describes it.

    Another process may have other versions of the modules from which the user's functions are imported.
    """
    parts = {name.strip("_"): _part(value) for name, value in described.given_settings().items()}
    return Identity(type(described).__qualname__, _part(type(described)), parts)


def changes(old: Identity, new: Identity) -> list[Change]:
    """Return the settings that differ, and those that can't be compared, sorted by name."""
    found = [_change(name, old.parts.get(name), new.parts.get(name)) for name in sorted({*old.parts, *new.parts})]
    own = _change("class", old.definition, new.definition)
    return [change for change in (own, *found) if change is not None]


def _change(name: str, old: Part | None, new: Part | None) -> Change | None:
    if old is None or new is None:
        return Change(name, is_code=False, why=f"`{name}` is {'new' if old is None else 'gone'}")
    unknown = new.unknown or old.unknown
    if unknown is not None:
        return Change(name, is_code=True, why=f"`{name}` is taken as changed: {unknown}")
    return None if old.whole == new.whole else Change(name, old.settings == new.settings, f"`{name}` changed")


def _part(value: object) -> Part:
    try:
        return Part(digest(value), digest(value, settings_only=True))
    except IncomparableError as error:
        return Part(unknown=str(error))
