"""The script of the page's pictures fits the code and the tutorial, though only `make pictures` runs it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def pictures() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pictures", Path(__file__).parents[2] / ".ci" / "pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_script_finds_all_that_it_imports_and_the_program_of_the_tutorial(pictures):
    assert pictures.tutorial_flow().name == "shops"
