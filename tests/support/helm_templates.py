"""A small stand-in for Helm: fills in the templates that evenflow's charts have, and refuses any other.

It knows `.Values`, `.Release.Name`, `toJson`, `lt (int ..) (int ..)`, raw texts, and `if` and `range` on lines of their own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_BLOCK = re.compile(r"^ *\{\{- (if|range|end)(?: (.*))? \}\}$")
_EXPRESSION = re.compile(r"\{\{ (.*?) \}\}(?!\})")
_LOOP = re.compile(r"(?:\$name, \$value := )?(\.Values\.[\w.]+)")


def filled(template: str, values: Mapping[str, Any], release: str) -> str:
    """Return the template's text with these values. Raises ValueError for an expression that it doesn't know."""
    lines = iter(template.splitlines())
    return "".join(f"{line}\n" for line in _filled(lines, {".Values": values, ".Release": {"Name": release}}))


def _filled(lines: Iterator[str], scope: Mapping[str, Any], *, silent: bool = False) -> Iterator[str]:
    for line in lines:
        block = _BLOCK.match(line)
        if block is None:
            if not silent:
                yield _EXPRESSION.sub(lambda found: _evaluated(found[1], scope), line)
            continue
        word, expression = block.groups()
        if word == "end":
            return
        inside = list(_block(lines))
        if silent:
            continue
        if word == "if":
            yield from _filled(iter(inside), scope, silent=not _looked_up(expression, scope))
            continue
        loop = _LOOP.fullmatch(expression)
        if loop is None:
            raise ValueError(f"unknown loop: {expression}")
        found = _looked_up(loop[1], scope)
        for each in [(None, item) for item in found] if isinstance(found, list) else sorted(found.items()):
            yield from _filled(iter(inside), {**scope, "$name": each[0], "$value": each[1], ".": each[1]})


def _block(lines: Iterator[str]) -> Iterator[str]:
    """Yield the lines up to the end of a block."""
    depth = 1
    for line in lines:
        block = _BLOCK.match(line)
        depth += 0 if block is None else (-1 if block[1] == "end" else 1)
        if not depth:
            return
        yield line
    raise ValueError("a block without an end")


def _evaluated(expression: str, scope: Mapping[str, Any]) -> str:
    if (raw := re.fullmatch("`(.*)`", expression)) is not None:
        return raw[1]
    if (found := re.fullmatch(r"toJson (\S+)", expression)) is not None:
        return json.dumps(_looked_up(found[1], scope))
    if (less := re.fullmatch(r"lt \(int (\S+)\) \(int (\S+)\)", expression)) is not None:
        return json.dumps(int(_looked_up(less[1], scope)) < int(_looked_up(less[2], scope)))
    if re.fullmatch(r"\.Release\.Name|\$name", expression):
        return str(_looked_up(expression, scope))
    raise ValueError(f"unknown expression: {expression}")


def _looked_up(path: str, scope: Mapping[str, Any]) -> Any:
    if path in scope:
        return scope[path]
    found: Any = scope
    for number, part in enumerate(path.lstrip(".").split(".")):
        found = found[f".{part}" if number == 0 else part]
    return found
