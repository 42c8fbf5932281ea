"""Every example in a docstring gives what it says.

pytest's own `--doctest-modules` would import `engine/batch.py` as `engine.batch`, whose relative imports then lead nowhere; here each
module is imported by the name under which it is installed.
"""

from __future__ import annotations

import doctest
import importlib
import tempfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = {"evenflow": "evenflow", **{f"evenflow.{path.name}": path.name for path in (ROOT / "evenflow").iterdir() if path.is_symlink()}}


def modules_with_examples() -> list[str]:
    return [
        ".".join((package, *path.relative_to(ROOT / folder).with_suffix("").parts)).removesuffix(".__init__")
        for package, folder in FOLDERS.items()
        for path in sorted((ROOT / folder).rglob("*.py"))
        if ">>> " in path.read_text()
    ]


def failures(module: ModuleType) -> tuple[str, int]:
    """Return the differences from the docstrings of `module`, and the number of examples that ran."""
    differences: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    for examples in doctest.DocTestFinder().find(module, module.__name__):
        runner.run(examples, out=differences.append)
    return "".join(differences), runner.tries


@pytest.fixture
def swept_temporary_folder(monkeypatch):
    """Give examples a temporary folder that is deleted afterwards. `tmp_path` is too long for the path of a Unix socket."""
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield


@pytest.mark.usefixtures("swept_temporary_folder")
@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_give_what_they_say(name):
    difference, tried = failures(importlib.import_module(name))
    assert tried, f"{name} has a `>>>` that is no example"
    assert not difference, difference


def test_a_wrong_example_is_found():
    module = ModuleType("planted", ">>> 1 + 1\n3\n")
    difference, tried = failures(module)
    assert tried == 1
    assert "Expected:\n    3\nGot:\n    2" in difference
