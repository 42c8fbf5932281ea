"""Runs of the handover protocol, element by element, as files to read; `scenario.py` explains the commands.

A command, a line of dashes, its effects, an empty line. `EVENFLOW_REWRITE=1 pytest tests/simulation/test_scenarios.py` rewrites the
files with the present effects: read the difference before you commit it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from scenario import Scenario
from scenario_files import replayed

FILES = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_scenario_goes_as_written(file):
    text = file.read_text(encoding="utf-8")
    found = replayed(text, Scenario())
    if os.environ.get("EVENFLOW_REWRITE"):
        file.write_text(found, encoding="utf-8")
    else:
        assert found == text


def test_there_is_a_scenario_of_every_strategy():
    assert {file.stem for file in FILES} >= {"sudden", "fluid", "batched", "pause", "lazy"}
