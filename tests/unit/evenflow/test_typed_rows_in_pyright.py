"""Pyright, the type checker of many editors, accepts and refuses the same programs over typed rows as mypy.

Here it is basedpyright, which brings the program that pyright would download.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[3]
CHECKER = Path(sys.executable).with_name("basedpyright")


def checked(folder: Path, *programs: Path) -> list[dict[str, object]]:
    """Return what pyright says of programs. An ignored error that isn't there is one too."""
    settings = {
        "include": [str(program) for program in programs],
        "typeCheckingMode": "standard",
        "reportUnnecessaryTypeIgnoreComment": "error",
        "extraPaths": [str(ROOT / "src")],
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [CHECKER, "--project", folder, "--pythonpath", sys.executable, "--outputjson"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    found: list[dict[str, object]] = json.loads(done.stdout)["generalDiagnostics"]
    return found


def test_typed_rows_and_the_public_interface_are_right_for_pyright(tmp_path):
    assert CHECKER.exists(), "install it by: make pyright"
    assert checked(tmp_path, ROOT / "tests" / "typed") == []


def test_pyright_refuses_an_attribute_that_a_row_lacks(tmp_path):
    (tmp_path / "program.py").write_text(
        "from dataclasses import dataclass\n"
        "import evenflow as ef\n"
        "@dataclass\n"
        "class Bid:\n"
        "    price: float\n"
        "def dear(stream: ef.Stream) -> ef.Stream[Bid]:\n"
        "    return stream.typed(Bid).filter(lambda bid: bid.cost > 1)\n"
    )
    (found,) = checked(tmp_path, tmp_path / "program.py")
    assert 'Cannot access attribute "cost" for class "Bid"' in str(found["message"])
