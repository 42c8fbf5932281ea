"""The verdict about the state of a keyed operator: if the new code can take it from the old workers, and the other way round."""

from __future__ import annotations

from dataclasses import dataclass

from ...operators.keyed import KeyedOperator
from ...readable_state import readable
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
    forth, back = readable(then, now), readable(now, then)
    if forth.how == "unreadable":
        return StateVerdict(Verdict.RESTART, f"it has other state: {forth.why}")
    verdict = Verdict.MIGRATED if forth.how == "migrated" else None
    why = f"its state is converted from version {then.version.number} to {now.version.number}" if verdict is not None else ""
    return StateVerdict(verdict, why, back.why if back.how == "unreadable" else None)
