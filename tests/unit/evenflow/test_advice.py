"""Errors advise only what exists: every option that a message names is one of a public function or group of settings."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from functools import cache
from pathlib import Path

import pytest

import evenflow as ef
from evenflow.stream import WindowedStream, WindowResults

FOLDERS = ("actors", "balancer", "connectors", "engine", "evenflow", "scheduler", "state")
ROOT = Path(ef.__file__).parents[1]
OPTION = re.compile(r"(?<![\w.\"'`])([a-z_]+)=(?!=)")


@cache
def messages() -> list[tuple[str, str]]:
    """Return the literal text of each error message without its placeholders, with its file and line."""
    found = []
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "testing" in path.parts or "scaling" in path.parts or path.stem == "svg":  # attributes of SVG are no options
                continue
            tree = ast.parse(path.read_text())
            alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
            for node in ast.walk(tree):
                if id(node) in alone:
                    continue
                if isinstance(node, ast.JoinedStr):
                    text = "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    text = node.value
                else:
                    continue
                if " " in text and "\n" not in text and not text.startswith("<"):
                    found.append((f"{path.relative_to(ROOT)}:{node.lineno}", text))
    return found


def options() -> set[str]:
    """Return the parameters of everything that a user calls."""
    called = [getattr(ef, name) for name in ef.__all__]
    classes = [*(thing for thing in called if inspect.isclass(thing)), WindowedStream, WindowResults]
    called += [method for each in classes for _, method in inspect.getmembers(each, inspect.isfunction)]
    found = set[str]()
    for each in called:
        try:
            found |= set(inspect.signature(each).parameters)
        except ValueError:
            continue
    return found


CHOSEN = {"n", "name", "clicks"}
"""Names of the user's choice in an example."""

OF_OTHERS = {"runtime_env", "address", "output_type", "include_dashboard", "num_cpus", "logging_level", "realm", "tzinfo", "minutes"}
"""Options of Ray and of datetime, attributes of an aggregate, and a parameter of HTTP."""


@pytest.mark.slow
def test_every_option_that_a_message_names_is_there():
    there = options() | CHOSEN | OF_OTHERS
    missing = [f"{place}: {name}= in {text!r}" for place, text in messages() for name in OPTION.findall(text) if name not in there]
    assert not missing, "\n".join(missing)


@pytest.mark.slow
def test_every_setting_that_a_message_names_is_there():
    there = {(name, field.name) for name in ef.__all__ if name.endswith("Config") for field in dataclasses.fields(getattr(ef, name))}
    named = [(place, *found) for place, text in messages() for found in re.findall(r"([A-Z]\w+Config)\(([a-z_]+)=", text)]
    assert len(named) > 5
    assert not [each for each in named if each[1:] not in there]


@pytest.mark.parametrize("operator", ["map", "flat_map", "stateful_map", "process"])
def test_operators_whose_rows_are_typed_take_the_schema_that_their_errors_advise(operator):
    owner = ef.Stream if hasattr(ef.Stream, operator) else ef.KeyedStream
    assert "schema" in inspect.signature(getattr(owner, operator)).parameters
