"""The verdict about the state of a keyed operator: if the new code can take it from the old workers, and the other way round."""

from __future__ import annotations

from dataclasses import dataclass

from ...operators.keyed import KeyedOperator
from ...state_description import StateDescription, compared, parts_change
from .verdicts import Verdict


@dataclass(frozen=True, slots=True)
class StateVerdict:
    """A verdict about state. `verdict`: RESTART, MIGRATED, or None if the new code reads the state as it is.

    `one_way`: why the old code can't read what the new code writes, None if it can.
    """

    verdict: Verdict | None = None
    why: str = ""
    one_way: str | None = None


def state_verdict(old: KeyedOperator, new: KeyedOperator) -> StateVerdict:
    """Compare the state of two versions of an operator."""
    then, now = old.state_description(), new.state_description()
    found = compared(then, now)
    differences = [*found.unfit, *(f"{part} is new" for part in found.new), *(f"{part} is gone" for part in found.lost)]
    if not differences and dict(then.parts) != dict(now.parts):
        differences = [f"the old state has {_parts(then)}, the new one {_parts(now)}"]
    if not differences and parts_change(then, now) is not None:
        differences = [f"its {now.noun}s are in another order: {_parts(then)}, and now {_parts(now)}"]
    return StateVerdict(Verdict.RESTART, f"it has other state: {'; '.join(differences)}") if differences else StateVerdict()


def _parts(description: StateDescription) -> str:
    return ", ".join(f"{name} ({kind})" for name, kind in description.parts.items()) or "no parts"
