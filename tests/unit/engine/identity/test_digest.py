"""Digests of values: what counts, and what doesn't."""

from __future__ import annotations

import dataclasses
import enum
import functools
import logging
import re
import sys
import threading
import types
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from evenflow.engine.expressions.expression import col
from evenflow.engine.identity.code_objects import code_parts
from evenflow.engine.identity.digest import IncomparableError, digest


def run(text: str, **scope: object) -> dict[str, object]:
    """Return what a program of the user defines."""
    defined = {"__name__": "__main__", **scope}
    exec(compile(text, f"/work/{len(text)}.py", "exec"), defined)
    return defined


def function(text: str, name: str = "f", **scope: object) -> object:
    return run(text, **scope)[name]


class Color(enum.Enum):
    RED = 1


class Point(NamedTuple):
    x: int
    y: int = 0


VALUES = [
    None, True, 1, 1.0, 1j, -0.0, 0.0, float("nan"), "1", b"1", (1,), [1], {1}, frozenset({1}), {1: 1}, {"a": 1}, {"a": 2}, 10**6000, "",
    (), [], {},
    ((1,), 2), ((1, 2),), np.arange(3), np.arange(3.0), np.float64(1), pa.schema({"a": "int64"}), pa.schema({"a": "int32"}), pa.int64(),
    pa.array([1, 2]), pa.array([1, 3]), pa.scalar(1), re.compile("a"), re.compile("a", re.IGNORECASE),
    Color.RED, Color, Point(1), Point(1, 2),
    len, [].append, str.upper, "a".upper, np.sqrt, np.where, np.cos, pc.add, pc.subtract,
    dataclasses.dataclass, functools.partial(len, "a"), functools.partial(len, "b"),
    logging.getLogger("a"), logging.getLogger("b"), col("a") > 1, col("a") > 2, col("b") > 1, (col("a") + 1).cast("int32"),
    int, str, list[int], int | None,
    types, np, Ellipsis,
]  # fmt: skip


def test_different_values_have_different_digests():
    digests = [digest(value) for value in VALUES]
    assert len(set(digests)) == len(VALUES)
    assert digests == [digest(value) for value in VALUES]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("def f(x): return x + 1", "\n\n# moved\ndef f(x):\n\n    return x + 1  # a comment", id="lines and comments"),
        pytest.param("def f(x): return x", "def g(): pass\ndef f(x): return x\ng()", id="other functions"),
        pytest.param("y = 1\ndef f(x): return x + y", "z = 2\ny = 1\ndef f(x): return x + y", id="other globals"),
        pytest.param("f = lambda x: x", "def make(): return lambda x: x\nf = make()", id="a lambda inside a function"),
        pytest.param("def f(x): return x in {'a', 'b'}", "def f(x): return x in {'b', 'a'}", id="a set in the code"),
        pytest.param(
            "def f(x): return g(x)\ndef g(x): return 1", "def g(x): return 1\ndef f(x): return g(x)", id="definitions in another order"
        ),
        pytest.param("class A:\n  x = 1\n  y = 2\nf = A()", "class A:\n  y = 2\n  x = 1\nf = A()", id="a class's body in another order"),
        pytest.param("class A:\n  '''Doc.'''\nf = A", "class A:\n  '''Another.'''\nf = A", id="the docstring of a class"),
        pytest.param("def f(): return print", "def f():\n  return print", id="a builtin"),
    ],
)
def test_equal_functions_have_equal_digests(one, other):
    assert digest(function(one)) == digest(function(other))


EDITS = [
    pytest.param("x = §\ndef f():\n  def g(): return x\n  return g", "1", "2", id="a global of nested code"),
    pytest.param("def f(x): return x + §", "1", "2", id="a constant"),
    pytest.param("def f(x): return x + §", "1", "1.0", id="the type of a constant"),
    pytest.param("def f(x): return x or §", "1", "True", id="a constant that is equal"),
    pytest.param("def f(x, y=§): return x", "1", "2", id="a default"),
    pytest.param("def f(x, *, y=§): return x", "1", "2", id="a keyword's default"),
    pytest.param("def f(x): return x.§", "a", "b", id="an attribute"),
    pytest.param("def f(x): return (lambda: §)()", "1", "2", id="nested code"),
    pytest.param("def f(x): return [a for a in §]", "x", "x if a", id="a comprehension"),
    pytest.param("§ f(x): return 1", "def", "async def", id="a coroutine"),
    pytest.param("def f(x): § 1", "return", "yield", id="a generator"),
    pytest.param("def f(x): return §(x)", "max", "min", id="a builtin"),
    pytest.param("def g(): return §\ndef f(x): return g()", "1", "2", id="a function that it calls"),
    pytest.param("def h(): return §\ndef g(): return h()\ndef f(): return g()", "1", "2", id="a function further down"),
    pytest.param("def f(n): return g(n)\ndef g(n): return f(n - §)", "1", "2", id="functions that call each other"),
    pytest.param("x = {'a': [§]}\ndef f(): return x", "1", "2", id="a global"),
    pytest.param("def f():\n  try: return 1\n  except §: return 2", "ValueError", "KeyError", id="an exception"),
    pytest.param("class A:\n  def m(self): return §\nf = A()", "1", "2", id="a method"),
    pytest.param("class A:\n  def m(self): return §\nf = A().m", "1", "2", id="a bound method"),
    pytest.param("class A:\n  x = §\nf = A", "1", "2", id="an attribute of a class"),
    pytest.param("class A:\n  x = §\nclass B(A): pass\nf = B", "1", "2", id="a base class"),
    pytest.param("class A:\n  @property\n  def x(self): return §\nf = A", "1", "2", id="a property"),
    pytest.param("class A:\n  @staticmethod\n  def x(): return §\nf = A", "1", "2", id="a static method"),
    pytest.param("class A:\n  @classmethod\n  def x(c): return §\nf = A", "1", "2", id="a class method"),
    pytest.param("class A:\n  __slots__ = ('x',)\nf = A()\nf.x = §", "1", "2", id="a slot"),
    pytest.param("class A: pass\nf = A()\nf.x = §", "1", "2", id="an attribute of an object"),
    pytest.param("import enum\nclass E(enum.Enum):\n  A = §\nf = E.A", "1", "2", id="an enumeration"),
    pytest.param("from functools import cache\n@cache\ndef f(x): return §", "1", "2", id="a cached function"),
    pytest.param(
        "from functools import wraps\ndef d(f):\n  @wraps(f)\n  def g(*a): return f(*a)\n  return g\n@d\ndef f(x): return §",
        "1",
        "2",
        id="a decorated function",
    ),
    pytest.param("import os.path\ndef f(x): return os.path.§(x)", "join", "split", id="a function of a module"),
    pytest.param(
        "from dataclasses import dataclass, field\n@dataclass\nclass A:\n  x: list = field(default_factory=§)\nf = A",
        "list",
        "dict",
        id="a dataclass's factory",
    ),
]
"""Programs with a place that is edited, and the texts there before and after."""


@pytest.mark.parametrize(("text", "one", "other"), EDITS)
def test_different_functions_have_different_digests(text, one, other):
    assert digest(function(text.replace("§", one))) != digest(function(text.replace("§", other)))


def test_module_that_a_function_imports_when_it_runs_counts(monkeypatch):
    def digest_with(body):
        module = types.ModuleType("tariffs")
        exec(body, module.__dict__)
        monkeypatch.setitem(sys.modules, "tariffs", module)
        return digest(function("def f(x):\n  import tariffs\n  return tariffs.of(x)"))

    assert digest_with("def of(x): return 1") == digest_with("\n\ndef of(x): return 1")
    assert digest_with("def of(x): return 1") != digest_with("def of(x): return 2")


@pytest.fixture
def installed(monkeypatch):
    """`installed(text)`: a module of an installed package."""

    def make(text):
        module = types.ModuleType("retrying")
        module.__file__ = "/usr/lib/python3/site-packages/retrying.py"
        monkeypatch.setitem(sys.modules, "retrying", module)
        exec(text, module.__dict__)
        return module

    return make


def test_function_of_an_installed_package_counts_by_its_code_and_that_of_its_module(installed):
    def digest_with(text):
        return digest(function("def f(x): return retrying.again(x)", retrying=installed(text)))

    text = "import threading\nLOCK = threading.Lock()\ndef again(x):\n  with LOCK: return times(x)\ndef times(x): return 1"
    assert digest_with(text) == digest_with(f"{text}\nOTHER = 1")
    assert digest_with(text) != digest_with(text.replace("return 1", "return 2"))
    assert digest_with(text) != digest_with(f"{text}\n__version__ = '2'")


def test_function_that_an_installed_decorator_wraps_counts(installed):
    decorator = installed("def again(f):\n  def g(*a): return f(*a)\n  return g").again
    one, same, other = (function(f"@again\ndef f(x): return {n}", again=decorator) for n in (1, 1, 2))
    assert digest(one) == digest(same) != digest(other)


def test_handlers_of_exceptions_are_part_of_the_code():
    code = function("def f():\n  try: return 1\n  except ValueError: return 2").__code__
    assert code_parts(code) != code_parts(code.replace(co_exceptiontable=b""))


def test_closures_that_are_not_filled_yet_can_be_compared():
    text = "def make():\n  def f(): return g()\n  return f\n  g = 1\nf = make()"
    assert digest(function(text)) == digest(function(text))


def test_settings_are_compared_without_code():
    one = functools.partial(function("def f(x, y): return 1"), y=1)
    code = functools.partial(function("def f(x, y): return 2"), y=1)
    setting = functools.partial(function("def f(x, y): return 1"), y=2)
    of = functools.partial(digest, settings_only=True)
    assert of(one) == of(code) != of(setting)
    assert of(col("a") > 1) == of(col("a") > 2)


@pytest.mark.parametrize("value", [threading.Lock(), (n for n in range(3)), memoryview(b"")])
def test_value_that_cannot_be_pickled_is_incomparable(value):
    with pytest.raises(IncomparableError, match=f"it has a {type(value).__name__}, which can't be compared"):
        digest({"a": [value]})


def test_cycles_end():
    one, other = [1], [1]
    one.append(one)
    other.append(other)
    assert digest(one) == digest(other) != digest([1, [1]])


def test_nesting_without_end_is_incomparable():
    nested: list[object] = []
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(IncomparableError, match="nested too deeply"):
        digest(nested)
    while nested:  # deallocated step by step
        nested = nested.pop()  # type: ignore[assignment]


def test_values_in_modules_of_others_say_nothing_about_the_code(monkeypatch):
    def modules(row):
        return {"loaded": sorted(sys.modules)}

    before = digest(modules)
    monkeypatch.setitem(sys.modules, "a_module_that_was_not_there", types.ModuleType("a_module_that_was_not_there"))
    assert digest(modules) == before
