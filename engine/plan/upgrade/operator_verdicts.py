"""The verdict about one operator: how it differs in two plans, and if its workers can be replaced while the job runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...identity.identity import Change, Identity, changes, identity_of
from ...operators.base import Operator
from ...operators.joins.join_side import JoinSide
from ...operators.keyed import KeyedOperator
from ...operators.own_watermark import OwnWatermark
from ...operators.rows.broadcast import Broadcast
from ...operators.rows.read import Read
from ...operators.rows.write import Write
from ...sink import Sink
from ...source import Source
from ..physical import Plan
from .state import StateVerdict, state_verdict
from .verdicts import Verdict

_FIXED = {
    OwnWatermark: "it assigns event times, and the windows behind it hold rows with those of before",
    Broadcast: "its readers hold rows by its old settings",
    JoinSide: "the join holds rows by its old settings",
}
"""Operators without state whose settings decide about the state of others."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict and its reason. `one_way`: why the old code can't read what the new code writes, None if it can."""

    verdict: Verdict
    why: str = ""
    one_way: str | None = None


UNCHANGED = Judged(Verdict.UNCHANGED)


def identities(plan: Plan) -> dict[str, Identity]:
    """Return the identity of each operator of a plan, by name: of the source or the sink for those that read or write one.

    To be called in the process of the program: another one may have other versions of its modules.
    """
    return {chained.name: identity_of(_described(chained.operator)) for stage in plan.stages for chained in stage.chain}


def judged(old: Operator, new: Operator, before: Identity, after: Identity) -> Judged:
    """Return the verdict about an operator, by the identities from the processes of both programs."""
    if type(old) is not type(new) or before.kind != after.kind:
        return Judged(Verdict.RESTART, f"it was a {before.kind} and is a {after.kind}")
    found = changes(before, after)
    if isinstance(old, Read) and isinstance(new, Read):
        return _source(old.source, new.source, found)
    if isinstance(old, Write) and isinstance(new, Write):
        return _sink(old.sink, new.sink, found)
    if not found:
        return UNCHANGED
    if [*map(identity_of, old.sources)] != [*map(identity_of, new.sources)]:
        return Judged(Verdict.RESTART, "its table is read from another source")
    fixed = next((why for kind, why in _FIXED.items() if isinstance(new, kind)), None)
    if fixed is not None:
        return Judged(Verdict.RESTART, f"{_text(found)}: {fixed}")
    live = Verdict.CODE if any(change.is_code for change in found) else Verdict.SETTINGS
    if isinstance(old, KeyedOperator) and isinstance(new, KeyedOperator):
        state = state_verdict(old, new)
        if state.verdict is not None:
            return Judged(state.verdict, state.why, state.one_way)
        return Judged(live, _text(found), state.one_way)
    return Judged(live, _text(found))


def taken_as_changed(old: Operator, new: Operator) -> Judged:
    """Return the verdict about an operator that looks unchanged and is to be replaced all the same.

    Sources and sinks stay as they are: new workers get those that were started.
    """
    if isinstance(new, Read | Write):
        return UNCHANGED
    state = state_verdict(old, new) if isinstance(old, KeyedOperator) and isinstance(new, KeyedOperator) else StateVerdict()
    return Judged(state.verdict or Verdict.CODE, state.why or "it is taken as changed", state.one_way)


def _described(operator: Operator) -> Operator | Source | Sink:
    if isinstance(operator, Read):
        return operator.source
    return operator.sink if isinstance(operator, Write) else operator


def _source(old: Source, new: Source, found: Sequence[Change]) -> Judged:
    fixed = [change for change in found if change.name not in new.may_change]
    if fixed:
        return Judged(Verdict.RESTART, f"its settings changed: {_text(fixed)}")
    reads = new.reads_as(old)
    if not found and reads:
        return UNCHANGED
    problem = new.continues(old)
    if problem is not None:
        return Judged(Verdict.RESTART, problem)
    back = old.continues(new)
    why = "; ".join(filter(None, (_text(found), "" if reads else "it reads other columns or rows")))
    return Judged(_live(found), why, back)


def _sink(old: Sink, new: Sink, found: Sequence[Change]) -> Judged:
    fixed = [change for change in found if change.name not in new.may_change]
    if fixed:
        return Judged(Verdict.RESTART, f"its settings changed: {_text(fixed)}")
    if not found:
        return UNCHANGED
    problem = new.continues(old)
    return Judged(Verdict.RESTART, problem) if problem is not None else Judged(_live(found), _text(found))


def _live(found: Sequence[Change]) -> Verdict:
    return Verdict.CODE if any(change.is_code for change in found) else Verdict.SETTINGS


def _text(found: Sequence[Change]) -> str:
    return ", ".join(change.why for change in found)
