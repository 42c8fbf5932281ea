"""Stela's star on two nodes gets a third one; `stela_on_nodes.py` runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(300)  # a process of Ray's takes from one second to ten to start, by how busy the machine is


@pytest.fixture(scope="module")
def seen(folder, tmp_path_factory):
    """What the program prints."""
    program = Path(__file__).with_name("stela_on_nodes.py")
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    command = [sys.executable, str(program), str(tmp_path_factory.mktemp("stela"))]
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-5_000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_the_operator_that_holds_the_others_back_gets_the_new_nodes_workers(seen):
    assert seen["added"] == [seen["node"]]
    before, after = seen["parallelism"]["middle"]
    assert before == 4 < after
    assert [seen["places"][f"middle-{index}"] for index in range(before, after)] == [seen["node"]] * (after - before)


def test_all_rows_are_those_of_the_sequential_computation(seen):
    found = seen["differences"]
    assert found.keys() == {"up", "down"}
    assert all(rows > 100 and (missing, wrong) == (0, 0) for rows, missing, wrong in found.values())
