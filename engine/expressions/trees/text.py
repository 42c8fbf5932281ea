"""The text of an expression, as a user would write it with names in place of `ef.col`: for plans, errors and saved state.

Different trees have different texts, because a checkpoint recognises the expression of an aggregate by its text.

>>> text_of(Call("gt", (Call("mul", (Column("price"), Column("unit price"))), Literal(pa.scalar(2)))))
'(price * col("unit price")) > 2'
>>> text_of(Call("str.contains", (Column("name"), Literal(pa.scalar("a.c")), Literal(pa.scalar(True)))))
"name.str.contains('a.c', True)"
"""

from __future__ import annotations

import json

import pyarrow as pa

from .tree import Call, Column, Literal, Tree

SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "and": "&", "or": "|",
}  # fmt: skip
"""The functions that are operators of Python."""

_PREFIXES = {"neg": "-", "not": "~"}


def text_of(tree: Tree) -> str:
    """Return the expression as text."""
    if isinstance(tree, Column):
        return tree.name if tree.name.isidentifier() else f"col({json.dumps(tree.name, ensure_ascii=False)})"
    if isinstance(tree, Literal):
        return _literal(tree.value)
    first, *rest = tree.arguments
    if tree.name in SIGNS:
        return f"{_inner(first)} {SIGNS[tree.name]} {_inner(rest[0])}"
    if tree.name in _PREFIXES:
        return f"{_PREFIXES[tree.name]}{_inner(first)}"
    if tree.name == "case":
        return _case(tree)
    return f"{_inner(first)}.{tree.name}({', '.join(map(text_of, rest))})"


def _inner(tree: Tree) -> str:
    """Return the text with parentheses if it is an operator or a negative number."""
    text = text_of(tree)
    operator = isinstance(tree, Call) and (tree.name in SIGNS or tree.name in _PREFIXES)
    return f"({text})" if operator or (isinstance(tree, Literal) and text.startswith("-")) else text


def _case(tree: Call) -> str:
    *pairs, other = tree.arguments
    branches = "".join(
        f"{'.' if place else ''}when({text_of(condition)}).then({text_of(value)})"
        for place, (condition, value) in enumerate(zip(pairs[::2], pairs[1::2], strict=True))
    )
    return f"{branches}.otherwise({text_of(other)})"


def _literal(value: pa.Scalar) -> str:
    kind = value.type
    if not value.is_valid:
        return "None" if pa.types.is_null(kind) else f"{str(kind)!r}"
    try:
        text = repr(value.as_py())
    except (ValueError, OverflowError):  # a time that Python can't represent
        return f"{value.cast(pa.int64())} as {kind}"
    plain = any(check(kind) for check in (pa.types.is_int64, pa.types.is_float64, pa.types.is_string, pa.types.is_boolean))
    return text if plain or pa.scalar(value.as_py()).type == kind else f"{text} as {kind}"
