"""Descriptions of the state of keyed operators, so that a checkpoint is never restored into another kind of state.

A checkpoint's manifest holds the description of each operator, and a job compares it with its own before it starts. Invariant:
state with equal descriptions has the same meaning. The texts are stored, so changing one makes older checkpoints unfit.

>>> then = StateDescription("running aggregates", {"keys": "k"}, {"x": 'sum("x")', "y": 'max("y")'})
>>> now = StateDescription("running aggregates", {"keys": "k"}, {"y": 'max("y")', "x": 'mean("x")', "n": "count()"})
>>> found = compared(then, now)
>>> found.unfit, found.new, found.lost
(('aggregate `x` was sum("x") and is mean("x")',), ('aggregate `n` (count())',), ())
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .state_version import FIRST, StateVersion

DECLARED_TYPE = "declared type"
"""The trait of a state that is one value: its type. A migration may change it."""


@dataclass(frozen=True, slots=True)
class StateDescription:
    """The description of an operator's state. `kind`: the kind of state; `traits`: named properties that must be equal.

    `parts`: descriptions of the pieces that are matched by name, in the order in which they are saved; `noun`: the word for them.
    `closed`: parts that can't be added to a state that was saved without them, and `because`, why; not stored. `fields`: parts that
    belong to another part (`cart.total` to `cart`), True if they may be missing in a saved state; not stored. `version`: that of the
    user's code; its number is stored.
    """

    kind: str
    traits: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)
    noun: str = "aggregate"
    closed: frozenset[str] = frozenset()
    because: str = "keeps all columns of rows, which the state doesn't have"
    fields: Mapping[str, bool] = field(default_factory=dict)
    version: StateVersion = FIRST

    def packed(self) -> list[Any]:
        """Return the description as a manifest stores it: without a version's number if that is 1, as before there were versions."""
        number = [self.version.number] if self.version.number > 1 else []
        return [self.kind, list(map(list, self.traits.items())), list(map(list, self.parts.items())), self.noun, *number]

    @staticmethod
    def unpacked(fields: list[Any]) -> StateDescription:
        """Return the description that was packed. Raises ValueError or TypeError for anything else."""
        kind, traits, parts, noun, *version = fields
        (number,) = version or [1]
        return StateDescription(str(kind), dict(traits), dict(parts), str(noun), version=StateVersion(int(number)))


@dataclass(frozen=True, slots=True)
class Compared:
    """The result of a comparison: `unfit`, differences that can't be bridged; `new`, `lost`, parts that only one has, as text.

    `version`: the reason why the operator's code can't read the version of the saved state, None if it can.
    """

    unfit: tuple[str, ...]
    new: tuple[str, ...]
    lost: tuple[str, ...]
    version: str | None = None


def compared(then: StateDescription, now: StateDescription) -> Compared:
    """Compare the state of a checkpoint with that of an operator of the same name."""
    if then.kind != now.kind:
        return Compared((f"the saved state is that of {then.kind}, the operator's that of {now.kind}",), (), ())
    problem = now.version.problem(then.version.number)
    if problem is not None:
        return Compared((), (), (), problem)
    migrated = then.version.number < now.version.number
    names = dict.fromkeys(name for name in [*then.traits, *now.traits] if not (migrated and name == DECLARED_TYPE))
    traits = [(name, then.traits.get(name, "none"), now.traits.get(name, "none")) for name in names]
    unfit = [
        f"the saved state is of {name} {before}, the operator's of {name} {after}" for name, before, after in traits if before != after
    ]
    for name, former in now.version.renamed.items():
        if name in then.parts and former in then.parts:
            unfit.append(f"{now.noun} `{name}` was renamed from `{former}`, and both are in the saved state")
    if migrated:  # the user's code says what becomes of all parts
        return Compared(tuple(unfit), (), ())
    then = replace(then, parts=now.version.under_new_names(then.parts))
    for name, is_now in now.parts.items():
        was = then.parts.get(name, is_now)
        if was != is_now:
            unfit.append(f"{now.noun} `{name}` was {was} and is {is_now}")
        elif name not in then.parts and name in now.closed:
            unfit.append(f"{now.noun} `{name}` ({is_now}) is new, and {now.because}")
        elif name not in then.parts and not now.fields.get(name, True) and name.rpartition(".")[0] in then.parts:
            unfit.append(f"{now.noun} `{name}` ({is_now}) is new, and has no default for the states that were saved without it")
    return Compared(tuple(unfit), _only_in(now, then), _only_in(then, now))


def _only_in(these: StateDescription, others: StateDescription) -> tuple[str, ...]:
    """Return the parts that only `these` have, without new fields, which take their defaults or come with their owner."""
    only = {name: what for name, what in these.parts.items() if name not in others.parts and name not in these.fields}
    owners = tuple(f"{name}{mark}" for name in only for mark in ".[{") if these.noun == "state" else ()
    return tuple(f"{these.noun} `{name}` ({what})" for name, what in only.items() if not name.startswith(owners))


@dataclass(frozen=True, slots=True)
class PartsChange:
    """The names of the parts of saved state, `then`, and of the operator that restores it, `now`, each in order."""

    then: tuple[str, ...]
    now: tuple[str, ...]


def parts_change(then: StateDescription, now: StateDescription) -> PartsChange | None:
    """Return how chunks of saved state must be rearranged or migrated; None if they can be restored as they are."""
    same = list(then.parts) == list(now.parts) and then.version.number == now.version.number
    return None if same else PartsChange(tuple(then.parts), tuple(now.parts))


def seconds_text(microseconds: int) -> str:
    """Return a time span in seconds, exact.

    >>> seconds_text(90_000_000), seconds_text(1_234_567_000_001)
    ('90 s', '1234567.000001 s')
    """
    whole, rest = divmod(abs(microseconds), 1_000_000)
    return f"{'-' if microseconds < 0 else ''}{whole}{f'.{rest:06}'.rstrip('0') if rest else ''} s"


def columns_text(names: tuple[str, ...]) -> str:
    """Return column names as one text; different names give different texts.

    >>> columns_text(("user", "a,b"))
    "user, 'a,b'"
    """
    return ", ".join(name if name.isidentifier() else repr(name) for name in names) or "none"
