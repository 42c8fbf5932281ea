"""The parts of functions that decide what they do: their code without its place in a file, and the values that it refers to.

>>> def price(row): return row["n"] * 2
>>> def other(row):
...     # a comment moves lines
...     return row["n"] * 2
>>> code_parts(price.__code__) == code_parts(other.__code__)
True
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator
from inspect import CO_NESTED
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from .origins import Origin, origin_of, version_of

_READS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_COMPARED = (ModuleType, FunctionType, BuiltinFunctionType, type)
"""The values in modules of others that count: modules, functions and classes, by their version or code."""

_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})


def code_parts(code: CodeType) -> tuple[Any, ...]:
    """Return what a code object does, without file, lines and names of functions; nested code objects are its constants."""
    return (
        sys.version_info[:2],
        code.co_code,
        code.co_exceptiontable,
        code.co_flags & ~CO_NESTED,
        (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount),
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        code.co_cellvars,
        tuple(code_parts(each) if isinstance(each, CodeType) else each for each in code.co_consts),
    )


def function_parts(function: FunctionType) -> tuple[Any, ...]:
    """Return what a function does: its code, its defaults, its closure and the globals that it refers to.

    Globals of an installed package count only if they are functions of the same module. Its functions that have no name of their own,
    such as those that decorators return, may hold the user's.
    """
    named = dict(named_values(function.__code__, function.__globals__))
    module = function.__globals__.get("__name__")
    named_so: tuple[Any, ...] = (function.__name__, code_parts(function.__code__))
    if origin_of(module) is Origin.INSTALLED:
        named = {name: each for name, each in named.items() if isinstance(each, FunctionType) and each.__module__ == module}
        named_so = ("installed", module, function.__qualname__, version_of(module), *named_so)
        if _found(module, function.__qualname__) is function:
            return (*named_so, named)
    closure = tuple(map(content_of, function.__closure__ or ()))
    return (*named_so, function.__defaults__, function.__kwdefaults__, closure, dict(function.__dict__), named)


def _found(module: str | None, name: str) -> Any:
    """Return what has this dotted name in a module, None if nothing has."""
    value: Any = sys.modules.get(module or "")
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def named_values(code: CodeType, scope: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the globals that code refers to, nested code too, by name. Of a module the attributes that the code reads.

    Names that aren't defined are skipped: they are builtins, or defined later.
    """
    for each in _all_code(code):
        for path in _paths(each):
            if path[0] in scope:
                yield from _resolved(path, scope[path[0]])
        yield from _imported(each, scope)


def content_of(cell: Any) -> Any:
    """Return the value of a closure's cell."""
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return "empty cell"


def _all_code(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _all_code(each)


def _paths(code: CodeType) -> Iterator[tuple[str, ...]]:
    """Yield the dotted names that the code reads, such as `("np", "linalg", "norm")`."""
    path: tuple[str, ...] = ()
    for instruction in dis.get_instructions(code):
        if path and instruction.opname in _ATTRIBUTES:
            path = (*path, instruction.argval)
            continue
        if path:
            yield path
        path = (instruction.argval,) if instruction.opname in _READS else ()


def _imported(code: CodeType, scope: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of modules that the code imports when it runs, if it has a name like theirs."""
    if "IMPORT_NAME" not in _opcodes(code):
        return
    for imported in code.co_names:
        for full in (imported, f"{scope.get('__package__')}.{imported}"):
            module = sys.modules.get(full)
            yield from ((f"{full}.{name}", getattr(module, name)) for name in code.co_names if module is not None and name in vars(module))


def _opcodes(code: CodeType) -> set[str]:
    return {instruction.opname for instruction in dis.get_instructions(code)}


def _resolved(path: tuple[str, ...], value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the value of a dotted name; a module that is used otherwise counts by its name.

    So do values in modules that aren't the user's, such as `sys.modules`: they say nothing about the user's code.
    """
    for depth, name in enumerate(path[1:], 1):
        if not isinstance(value, ModuleType):
            yield ".".join(path[:depth]), value
            return
        own = origin_of(value.__name__) is Origin.OWN
        found = getattr(value, name, value) if own else vars(value).get(name, value)
        if found is value or not (own or isinstance(found, _COMPARED)):
            break
        value = found
    yield ".".join(path), value
