"""All functions that a tree may call, by name."""

from __future__ import annotations

from . import comparisons, conditions, nested, numbers, texts, times
from .concatenation import with_texts
from .operand import Binder

FUNCTIONS: dict[str, Binder] = {
    **numbers.FUNCTIONS,
    **comparisons.FUNCTIONS,
    **conditions.FUNCTIONS,
    **texts.FUNCTIONS,
    **times.FUNCTIONS,
    **nested.FUNCTIONS,
    "add": with_texts(numbers.FUNCTIONS["add"]),
}
