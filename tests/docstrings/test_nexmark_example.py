"""The monitor of an auction house shows results, and ends in order with Ctrl-C."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "nexmark.py"


@pytest.fixture
def example():
    spec = importlib.util.spec_from_file_location("nexmark_example", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_ctrl_c_ends_the_stream_and_what_its_windows_held_is_shown(example, monkeypatch, capsys):
    pictures, picture = [], example.picture

    def interrupted(job, found):
        pictures.append(picture(job, found))
        if len(pictures) == 2:
            raise KeyboardInterrupt
        return pictures[-1]

    monkeypatch.setattr(example, "picture", interrupted)
    monkeypatch.setattr(sys, "argv", ["nexmark.py", "--rate", "2000"])
    assert example.main() == 0
    assert len(pictures) == 3
    shown = capsys.readouterr().out
    assert "Hottest auctions of 10 s" in shown
    assert "results in" in shown
    assert " 0 results in" not in f" {shown}"
