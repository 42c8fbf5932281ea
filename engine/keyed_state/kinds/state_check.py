"""The check of states when they are written, so that a program with states that can't be saved fails before its first checkpoint.

The type of each state is checked. The contents of containers are checked for some states of a batch, in turn, and the newest of
their parts first: checking all would take longer than processing them. So a small batch is checked completely, and the next
checkpoint or move packs all states.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ....state.packed_types import CONTAINERS, KNOWN, MADE_OF, ZONED
from ....state.packing import first_foreign, problem_of

SHALLOW = KNOWN - CONTAINERS - ZONED
"""The types all of whose values can be saved."""

LEAST = 256
"""The number of parts of a batch's states that are always checked, at each depth."""

ONE_IN = 64
"""The number of states of a large batch for which one part is checked."""


class StateCheck:
    """The check of the states of one operator instance.

    `each`: the contents of every single state are checked, because the job continues without a refused record, which must be the
    one that wrote the state.
    """

    def __init__(self, *, each: bool) -> None:
        self._each = each
        self._turn = 0
        self._deep = False
        """True once a state was of a type that has parts or a time zone."""

    def accepts(self, state: Any) -> bool:
        """Return True if the state may be kept.

        Called for the first of several states of one type, or for each of a type that `must_see`.
        """
        kind = type(state)
        if kind in SHALLOW:
            return True
        self._deep = True
        return kind in KNOWN and not (self._each and first_foreign([state]) is not None)

    def must_see(self, kind: type) -> bool:
        """Return True if `accepts` must be called for each state of this type."""
        return self._each and kind not in SHALLOW

    def foreign(self, rows: int, keys: Callable[[int, int], Sequence[Any]], states: Mapping[Any, Any]) -> Any:
        """Return a key whose state can't be saved; None if none was found.

        `keys(start, length)`: the keys of `length` rows of the batch from the row `start`, whose states were written.
        """
        if not self._deep or self._each:
            return None
        most = max(rows // ONE_IN, LEAST)
        begin, self._turn = (0, self._turn + 1) if rows <= most else (self._turn % rows, self._turn + most)
        some = keys(begin, min(most, rows - begin))
        place = first_foreign(list(map(states.get, some)), most, self._turn)
        return None if place is None else some[place]

    def foreign_values(self, records: Sequence[Mapping[str, Any]]) -> int | None:
        """Return the index of the first of several records whose values can't be saved; None if none was found."""
        if self._each:
            return None
        self._turn += 1
        return first_foreign(records, max(len(records) // ONE_IN, LEAST), self._turn)

    def some_of(self, written: Sequence[Any]) -> list[int]:
        """Return the places of some of the states that were written, the last of each, in turn; none if each was checked."""
        if self._each:
            return []
        places = list({id(state): place for place, state in enumerate(written)}.values())
        most = max(len(places) // ONE_IN, LEAST)
        begin = self._turn * most % len(places) if len(places) > most else 0
        return places[begin : begin + most]


def unsaveable(state: Any, name: str = "state", declaration: str | None = None) -> str:
    """Describe why a state can't be saved, and what to store instead; `declaration`: of a type with which it can be saved."""
    declared = "" if declaration is None else f", or declare its type: {declaration}"
    return f"the state can't be saved: {problem_of(state, name)}{declared}; a state without a declared type is made of {MADE_OF}"
