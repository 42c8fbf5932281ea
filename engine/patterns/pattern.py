"""A pattern: steps in order, the time within which they must match, and what is skipped after a match.

>>> from ..expressions.expression import col
>>> from .step import step
>>> made = make_pattern([step("a", col("x") > 1), step("b", col("x") < 0, absent=True)], "10s", "past_last")
>>> made.describe()
'a, no b within 10 s, skip past_last'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from ..errors import FlowError
from ..state_description import seconds_text
from ..time.duration import Duration, microseconds
from .step import Step

Skip: TypeAlias = Literal["no_skip", "to_next", "past_last"] | tuple[Literal["to_first", "to_last"], str]
"""The matches that are skipped after one; `("to_first", step)` and `("to_last", step)` name a step."""

SKIPS = ("no_skip", "to_next", "past_last")
SKIPS_TO_STEP = ("to_first", "to_last")

MOST_STEPS = 60
"""The most steps of a pattern: a row's conditions are bits of one number."""

_EXAMPLE = 'for example [ef.step("small", ef.col("amount") < 10), ef.step("big", ef.col("amount") > 500)]'


@dataclass(frozen=True, eq=False)
class Pattern:
    """A checked pattern. `within`: microseconds; a match's last row is less than that after its first."""

    steps: tuple[Step, ...]
    within: int
    skip: Skip

    @cached_property
    def present(self) -> tuple[int, ...]:
        """The places of the steps that match rows."""
        return tuple(place for place, step in enumerate(self.steps) if not step.absent)

    @cached_property
    def absent_after(self) -> tuple[tuple[int, ...], ...]:
        """The places of the absent steps after each step that matches rows, up to the next one."""
        ends = (*self.present[1:], len(self.steps))
        return tuple(tuple(range(place + 1, end)) for place, end in zip(self.present, ends, strict=True))

    def resumes_at(self, path: Sequence[int], places: Sequence[int]) -> int:
        """Return the number of the first row at which a later match may begin, after a match of the rows `path` by the steps `places`."""
        if self.skip == "no_skip":
            return 0
        if self.skip == "to_next":
            return path[0] + 1
        if self.skip == "past_last":
            return path[-1] + 1
        kind, name = self.skip
        rows = [row for row, place in zip(path, places, strict=True) if self.steps[self.present[place]].name == name]
        return rows[0] if kind == "to_first" else rows[-1]

    def describe(self) -> str:
        """Return a few words for `explain()`."""
        skip = self.skip if isinstance(self.skip, str) else " ".join(self.skip)
        return f"{', '.join(step.describe() for step in self.steps)} within {seconds_text(self.within)}, skip {skip}"


def make_pattern(steps: Any, within: Duration, skip: Any) -> Pattern:
    """Return the pattern. Raises FlowError for steps that no rows can match, or that say nothing."""
    if not isinstance(steps, (list, tuple)) or not steps or not all(isinstance(each, Step) for each in steps):
        raise FlowError(f"pattern({steps!r:.200}): expected a list of steps, {_EXAMPLE}")
    if len(steps) > MOST_STEPS:
        raise FlowError(f"pattern: {len(steps)} steps; there may be {MOST_STEPS}")
    names = [each.name for each in steps]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise FlowError(f"pattern: two steps have the name {twice!r}: give each its own")
    _check_order(steps)
    length = microseconds(within, "pattern: within")
    if not length:
        raise FlowError("pattern: within is zero; it must be longer, because a match's last row is less than that after its first")
    return Pattern(tuple(steps), length, _checked_skip(skip, [each.name for each in steps if not each.absent]))


def _check_order(steps: Sequence[Step]) -> None:
    first = steps[0]
    if first.absent:
        raise FlowError(f"pattern: the first step, {first.name!r}, is absent: begin with a step that matches a row")
    if first.contiguity != "followed_by":
        raise FlowError(f"pattern: the first step, {first.name!r}, follows no other: give it no contiguity")
    for before, after in pairwise(steps):
        if before.absent and after.contiguity == "next":
            raise FlowError(
                f'pattern: no row comes before {after.name!r}, which is "next", so {before.name!r} is absent anyway: remove that step, '
                'or use contiguity="followed_by"'
            )


def _checked_skip(skip: Any, names: Sequence[str]) -> Skip:
    if isinstance(skip, str) and skip in SKIPS:
        return skip  # type: ignore[return-value]  # it is one of them
    if isinstance(skip, tuple) and len(skip) == 2 and isinstance(skip[0], str) and skip[0] in SKIPS_TO_STEP:
        if skip[1] not in names:
            raise FlowError(f"pattern: skip={skip!r:.200}: no step that matches rows has that name; there are: {', '.join(names)}")
        return skip
    choices = f'("to_first", {names[0]!r}) or ("to_last", {names[0]!r})'
    raise FlowError(f'pattern: skip={skip!r:.200}, expected "no_skip", "to_next", "past_last", {choices}')
