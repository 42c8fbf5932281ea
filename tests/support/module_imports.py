"""The imports of the project's modules, read from their sources: at any depth, in functions and for type checkers too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
LAYERS = ("state", "engine", "balancer", "scheduler", "connectors", "actors", "evenflow", "bench")


def imports(tree: ast.AST, module: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Yield line and full dotted name of every import in `module` (its dotted name in parts, `__init__` included)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            path = _path(node, module)
            yield from ((node.lineno, f"{path}.{alias.name}") for alias in node.names)


def local_names(tree: ast.AST, module: tuple[str, ...]) -> dict[str, str]:
    """Return the full dotted names of the names that imports bind in `module`."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update((a.asname, a.name) if a.asname else (a.name.partition(".")[0],) * 2 for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            path = _path(node, module)
            names.update((a.asname or a.name, f"{path}.{a.name}") for a in node.names)
    return names


def full_name(node: ast.expr, names: dict[str, str]) -> str | None:
    """Return the dotted name of `a.b.c` with `a` resolved; None for any other expression."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        before = full_name(node.value, names)
        return None if before is None else f"{before}.{node.attr}"
    return None


def module_name(layer: str, path: Path) -> tuple[str, ...]:
    """Return the module's name in parts, `__init__` included."""
    inside = path.relative_to(ROOT / layer).with_suffix("").parts
    return ("evenflow", *inside) if layer == "evenflow" else ("evenflow", layer, *inside)


def sources(layer: str) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Yield the files of a layer, each with its module's name in parts."""
    for path in sorted((ROOT / layer).rglob("*.py")):
        yield path, module_name(layer, path)


def _path(node: ast.ImportFrom, module: tuple[str, ...]) -> str:
    base = (*module[: -node.level], *(node.module or "").split(".")) if node.level else tuple((node.module or "").split("."))
    return ".".join(part for part in base if part)
