"""The life of jobs as files to read; `job_scenario.py` explains the commands.

A command, a line of dashes, what the state machine wants because of it, an empty line. `EVENFLOW_REWRITE=1 pytest
tests/unit/scheduler/job/test_job_scenarios.py` rewrites the files: review the difference before you commit it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from job_scenario import JobScenario
from scenario_files import replayed

FILES = sorted((Path(__file__).parent / "job_scenarios").glob("*.txt"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_job_goes_as_written(file):
    text = file.read_text(encoding="utf-8")
    found = replayed(text, JobScenario())
    if os.environ.get("EVENFLOW_REWRITE"):
        file.write_text(found, encoding="utf-8")
    assert found == text or os.environ.get("EVENFLOW_REWRITE")


def test_there_is_a_scenario_of_every_change():
    expected = {"start_and_finish", "checkpoints", "kill_and_recover", "move", "scale_out_and_in", "node_drain", "stop_and_continue"}
    assert {file.stem for file in FILES} >= expected
