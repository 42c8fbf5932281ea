"""The steps of a pattern, made by `ef.step`.

>>> from ..expressions.expression import col
>>> step("small", col("amount") < 10, times=(2, None)).describe()
'small{2,}'
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ..errors import FlowError
from ..expressions.expression import Expression
from ..functions.error_policy import function_name
from ..functions.user_function import check_function

Contiguity = Literal["next", "followed_by", "followed_by_any"]
"""The rows that may come between two matched rows: none; those that don't match; any."""

CONTIGUITIES = ("next", "followed_by", "followed_by_any")

StepCondition: TypeAlias = Expression | Callable[..., Any]
"""An expression, `function(row) -> bool`, or `function(row, matched) -> bool`."""


@dataclass(frozen=True, eq=False, slots=True)
class Step:
    """A step of a pattern: between `least` and `most` rows that meet its condition (`most` None: any number).

    `contiguity` applies between the step before and its first row, `repeats` between its rows. `absent`: no row may meet the condition
    where the step stands.
    """

    name: str
    condition: StepCondition
    least: int
    most: int | None
    contiguity: Contiguity
    repeats: Contiguity
    absent: bool

    @property
    def repeated(self) -> bool:
        """True if it may match several rows."""
        return self.most != 1

    @property
    def reads_matched(self) -> bool:
        """True if the condition is a function that also gets the rows matched so far."""
        return not isinstance(self.condition, Expression) and _takes_matched(self.condition)

    def describe(self) -> str:
        """Return its name and times, for `explain()`."""
        times = ""
        if self.repeated:
            times = f"{{{self.least}}}" if self.least == self.most else f"{{{self.least},{'' if self.most is None else self.most}}}"
        return f"{'no ' if self.absent else ''}{self.name}{times}"

    def traits(self) -> str:
        """Describe everything that decides which rows it matches, for a `StateDescription`."""
        condition = repr(self.condition) if isinstance(self.condition, Expression) else function_name(self.condition)
        return f"{self.describe()} {self.contiguity} {self.repeats} where {condition}"


def step(
    name: str,
    condition: StepCondition,
    *,
    times: int | tuple[int, int | None] = 1,
    contiguity: Contiguity = "followed_by",
    repeats: Contiguity = "followed_by",
    absent: bool = False,
) -> Step:
    """Make a step of `KeyedStream.pattern`: rows of a key that meet `condition`.

    `condition`: an expression, `function(row) -> bool`, or `function(row, matched) -> bool`, where `matched` has the list of rows of each
    step so far, by its name. `times`: the number of rows, `(least, most)`, or `(least, None)` without an upper bound. `contiguity`: the
    rows that may come between the step before and this one: none ("next"), rows that don't meet the condition ("followed_by"), or any
    ("followed_by_any": each later row that meets it makes one more match). `repeats`: the same between the rows of a repeated step.
    `absent`: no row that meets the condition may come between the step before and the next one, or, as the last step, before `within`
    is over. Raises FlowError for wrong arguments.
    """
    if not isinstance(name, str) or not name:
        raise FlowError(f'step({name!r:.200}, ...): the name of a step is a text, for example ef.step("big", ef.col("amount") > 500)')
    place = f"step({name!r:.200})"
    if not isinstance(condition, Expression):
        if not callable(condition):
            raise FlowError(
                f"{place}: the condition is {condition!r:.200}, expected an expression or a function of (row) or (row, matched)"
            )
        check_function(condition, place, "row", *(("matched",) if _takes_matched(condition) else ()))
    least, most = _times(times, place)
    for option, value in (("contiguity", contiguity), ("repeats", repeats)):
        if not isinstance(value, str) or value not in CONTIGUITIES:
            raise FlowError(f'{place}: {option}={value!r:.200}, expected "next", "followed_by" or "followed_by_any"')
    if not isinstance(absent, bool):
        raise FlowError(f"{place}: absent={absent!r:.200}, expected True or False")
    if absent and ((least, most) != (1, 1) or contiguity != "followed_by" or repeats != "followed_by"):
        raise FlowError(f"{place}: an absent step has no rows, so give it no times, contiguity or repeats")
    if most == 1 and repeats != "followed_by":
        raise FlowError(f"{place}: repeats={repeats!r} is for the rows of a repeated step; give times, or use contiguity")
    return Step(name, condition, least, most, contiguity, repeats, absent)


def _times(times: Any, place: str) -> tuple[int, int | None]:
    """Return the least and the most rows. Raises FlowError."""
    least, most = times if isinstance(times, tuple) and len(times) == 2 else (times, times)
    for number in (least, *(() if most is None else (most,))):
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise FlowError(f"{place}: times={times!r:.200}, expected a number of rows from 1, (least, most), or (least, None)")
    if most is not None and most < least:
        raise FlowError(f"{place}: times={times!r}: the most is less than the least")
    return least, most


def _takes_matched(condition: Callable[..., Any]) -> bool:
    """Return True unless the function can be called with a row alone."""
    try:
        inspect.signature(condition).bind(None)
    except TypeError:
        return True
    except ValueError:  # Python knows no signature for some built-in functions
        return False
    return False
