"""The problems of expressions, without the operator that has them."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class BindingError(Exception):
    """An expression doesn't fit the columns that it reads: a column is missing, or has a type that a function can't take."""


class EvaluationError(Exception):
    """An expression can't be evaluated for a value: a result overflows, a divisor is zero, a text is no number."""


def missing_column(name: str, there: Iterable[str]) -> str:
    """Describe a missing column, with the closest name of those there are.

    >>> missing_column("prise", ["price", "qty"])
    'no column `prise`; did you mean `price`? There are: price, qty'
    """
    names = list(there)
    close = get_close_matches(name, names, 1)
    there_are = f"here are: {', '.join(names)}"
    return f"no column `{name}`; " + (f"did you mean `{close[0]}`? T{there_are}" if close else f"t{there_are}")
