"""Regular expressions (RE2).

>>> with_group(r"(a|b)=([(x]+)", 2)
'(?:a|b)=(?P<g>[(x]+)'
>>> with_group("a+", 0)
'(?P<g>a+)'
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from ..trees.problems import BindingError

_TOKEN = re.compile(r"\\Q.*?(?:\\E|$)|\\.|\[\^?\]?(?:\[:\w+:\]|\\.|[^\]\\])*\]|\(\?P?<\w+>|\(\?|\(|.", re.DOTALL)
"""A quoted text, an escaped character, a class of characters, the beginning of a group, or any other character."""


def checked_pattern(pattern: str) -> str:
    """Return the pattern. Raises BindingError if it is no regular expression."""
    try:
        pc.match_substring_regex(pa.array([""]), pattern)
    except pa.ArrowInvalid as error:
        raise BindingError(str(error)) from error
    return pattern


def with_group(pattern: str, group: int) -> str:
    """Return the pattern with the one group `group`, named: Arrow extracts named groups only. Raises BindingError if it has fewer."""
    if group == 0:
        return f"(?P<g>{''.join(_grouped(pattern, 0))})"
    parts = _grouped(pattern, group)
    if not any(part == "(?P<g>" for part in parts):
        raise BindingError(f"the pattern {pattern!r} has no group {group}")
    return "".join(parts)


def _grouped(pattern: str, group: int) -> list[str]:
    """Return the parts of the pattern, whose groups don't capture, except for the group `group`."""
    parts, count = [], 0
    for part in _TOKEN.findall(pattern):
        if part == "(" or re.fullmatch(r"\(\?P?<\w+>", part):
            count += 1
            parts.append("(?P<g>" if count == group else "(?:")
        else:
            parts.append(part)
    return parts
