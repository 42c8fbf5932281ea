"""Digests of values: equal for values that mean the same, in each process.

The order of sets and dicts does not count, nor where a function stands in its file. A function counts by its code and by all that it
refers to. Identifiers and the seed of hashes, which differ from process to process, have no influence.

>>> digest({"b": {1, 2}, "a": lambda n: n + 1}) == digest({"a": lambda n: n + 1, "b": {2, 1}})
True
>>> digest(lambda n: n + 1) == digest(lambda n: n + 2)
False
"""

from __future__ import annotations

import copyreg
import hashlib
from collections.abc import Iterable, Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from ..configured import Configured
from ..expressions.expression import Expression
from ..expressions.trees.tree import Tree
from .class_bodies import class_parts
from .code_objects import code_parts, content_of, function_parts
from .origins import Origin, origin_of, version_of

_SIZE = 16


class IncomparableError(Exception):
    """A value that can't be compared; its text says why."""


def digest(value: Any, *, settings_only: bool = False) -> bytes:
    """Return the digest of a value. `settings_only`: functions, classes and expressions of the user all count as equal.

    Raises IncomparableError for a value that can't be compared, such as a lock.
    """
    digester = _Digester(settings_only=settings_only)
    try:
        digester.add(value)
    except RecursionError as error:
        raise IncomparableError("it is nested too deeply") from error
    return digester.result()


class _Digester:
    """A walk over one value. An object that is met again counts by the number of the first meeting, so cycles end."""

    def __init__(self, *, settings_only: bool) -> None:
        self._hash = hashlib.blake2b(digest_size=_SIZE)
        self._settings_only = settings_only
        self._met: dict[int, int] = {}
        self._kept: list[Any] = []
        """The objects met, kept so that no other one gets the id of one of them."""

    def result(self) -> bytes:
        return self._hash.digest()

    def add(self, value: Any) -> None:
        """Add a value to the digest."""
        if value is None or value is Ellipsis or value is NotImplemented:
            self._put("constant", repr(value).encode())
        elif type(value) in (bool, float, complex):
            self._put(type(value).__name__, repr(value).encode())
        elif type(value) is int:
            self._put("int", f"{value:x}".encode())
        elif type(value) is str:
            self._put("str", value.encode("utf-8", "surrogatepass"))
        elif type(value) in (bytes, bytearray):
            self._put(type(value).__name__, bytes(value))
        elif type(value) is tuple:
            self._add_all("tuple", value)
        elif id(value) in self._met:
            self._put("met", str(self._met[id(value)]).encode())
        else:
            self._met[id(value)] = len(self._met)
            self._kept.append(value)
            self._add_object(value)

    def _put(self, kind: str, content: bytes = b"") -> None:
        self._hash.update(f"{kind}:{len(content)}:".encode())
        self._hash.update(content)

    def _add_all(self, kind: str, values: Iterable[Any]) -> None:
        items = list(values)
        self._put(kind, str(len(items)).encode())
        for each in items:
            self.add(each)

    def _add_object(self, value: Any) -> None:
        if type(value) is list:
            self._add_all("list", value)
        elif type(value) in (set, frozenset):
            self._put(type(value).__name__, b"".join(sorted(map(self._alone, value))))
        elif type(value) is dict:
            self._add_items("dict", value)
        elif isinstance(value, FunctionType | CodeType | type | MethodType | BuiltinFunctionType | ModuleType):
            self._add_code(value)
        elif isinstance(value, Expression | Tree) and self._settings_only:
            self._put("code")
        elif isinstance(value, Configured):
            self.add(type(value))
            self._add_items("settings", value.given_settings())
        else:
            self._add_reduced(value)

    def _add_items(self, kind: str, items: Mapping[Any, Any]) -> None:
        ordered = sorted(((self._alone(key), each) for key, each in items.items()), key=lambda item: item[0])
        self._put(kind, str(len(ordered)).encode())
        for key, each in ordered:
            self._put("key", key)
            self.add(each)

    def _alone(self, value: Any) -> bytes:
        """Return the digest of an element whose place in its container doesn't count."""
        return digest(value, settings_only=self._settings_only)

    def _add_code(self, value: Any) -> None:
        if isinstance(value, MethodType):
            self._put("method")
            self.add(value.__func__)
            self.add(value.__self__)
        elif isinstance(value, ModuleType):
            self._put("module", f"{value.__name__} {version_of(value.__name__)}".encode())
        elif isinstance(value, BuiltinFunctionType):
            self._put("builtin", f"{value.__module__}.{value.__qualname__}".encode())
            if value.__self__ is not None and not isinstance(value.__self__, ModuleType):
                self.add(value.__self__)
        elif isinstance(value, CodeType):
            self._put("code")
            if not self._settings_only:
                self.add(code_parts(value))
        else:
            self._add_definition(value)

    def _add_definition(self, value: FunctionType | type) -> None:
        """Add a function or a class: by name if all workers share it, else by what it does."""
        origin = origin_of(value.__module__)
        if origin is Origin.FIXED or (origin is Origin.INSTALLED and isinstance(value, type)):
            self._put("named", f"{value.__module__}.{value.__qualname__} {version_of(value.__module__)}".encode())
            if isinstance(value, FunctionType) and "<" in value.__qualname__:
                self._add_local(value)
        elif self._settings_only:
            self._put("code")
        else:
            self.add(function_parts(value) if isinstance(value, FunctionType) else class_parts(value))

    def _add_local(self, function: FunctionType) -> None:
        """Add a function of a library that has no name of its own: what it refers to may be the user's."""
        if not self._settings_only:
            self.add(code_parts(function.__code__))
        self._add_all("closure", map(content_of, function.__closure__ or ()))

    def _add_reduced(self, value: Any) -> None:
        """Add an object as pickle takes it apart."""
        reduce = copyreg.dispatch_table.get(type(value))
        try:
            reduced = reduce(value) if reduce is not None else value.__reduce_ex__(4)
        except Exception as error:
            raise IncomparableError(f"it has a {type(value).__qualname__}, which can't be compared ({error})") from error
        if isinstance(reduced, str):
            self._put("global", f"{getattr(value, '__module__', '')}.{reduced}".encode())
            if hasattr(value, "__wrapped__"):
                self.add(value.__wrapped__)
            return
        function, arguments, state, items, pairs = (*reduced, None, None, None)[:5]
        self._put("object")
        self.add(function)
        self._add_all("arguments", arguments)
        self.add(state)
        self._add_all("items", items or ())
        self._add_items("pairs", dict(pairs or ()))
