"""The public API: every name is used and typed, and what would break who uses the stored version is named, as `make lint` does."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import pytest

import evenflow as ef

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def public_api():
    spec = importlib.util.spec_from_file_location("public_api", ROOT / ".ci" / "public_api.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_public_name_is_used_in_the_file_that_the_type_checker_reads():
    tree = ast.parse((ROOT / "tests" / "typed" / "public_api.py").read_text())
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ef"
    }
    assert used == set(ef.__all__)


STUB = """__all__ = ["Job", "count"]
class Job:
    name: str
    def scale(self, operator: str, parallelism: int, *, timeout: str | None = None) -> int: ...
def count(column: str = "n") -> int: ...
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        pytest.param("    name: str\n", "", "name", id="an attribute is gone"),
        pytest.param(", *, timeout: str | None = None", "", "timeout", id="a parameter is gone"),
        pytest.param("operator: str,", "stage: str,", "scale", id="a parameter is named differently"),
        pytest.param("parallelism: int,", "parallelism: int, nodes: int,", "nodes", id="a parameter is needed"),
        pytest.param('column: str = "n"', "column: str", "column", id="a default is gone"),
    ],
)
def test_a_breaking_change_is_named(public_api, old, new, said):
    broken = public_api.broken(STUB, STUB.replace(old, new))
    assert broken
    assert all(said in each for each in broken)


def test_an_addition_breaks_no_program(public_api):
    more = STUB.replace("timeout: str | None = None", "timeout: str | None = None, nodes: int = 1") + "def total() -> int: ...\n"
    assert public_api.broken(STUB, more.replace('"count"]', '"count", "total"]')) == []
