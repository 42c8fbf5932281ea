"""The examples of docs/how-to/state.md run as they stand there, and print what it says."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs/how-to/state.md").read_text()


def test_examples_print_what_the_page_says(capsys):
    blocks = re.findall(r"```(python|text)\n(.*?)```", PAGE, re.DOTALL)
    assert [kind for kind, _ in blocks] == ["python", "text", "python"]
    for kind, block in blocks:
        if kind == "python":
            exec(block, {})
        else:
            assert capsys.readouterr().out == block


def test_tests_that_it_names_are_there():
    named = re.findall(r"`(tests/[\w/]+\.py)`", PAGE)
    assert named
    assert [name for name in named if not (Path(__file__).parents[2] / name).exists()] == []
