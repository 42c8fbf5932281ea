"""The traffic between two hosts, read on the wire; `hosts.py` creates them, `transports_on_hosts.py` runs a channel between them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hosts import impossible, in_hall
from patience import patience
from ray_settings import OF_PROGRAMS
from watching import SUPPORT


@pytest.fixture
def short_folder():
    """Provide a folder with a short path, for sockets."""
    path = Path(tempfile.mkdtemp(prefix="ef-", dir="/tmp"))
    yield path
    shutil.rmtree(path)


def test_records_that_cross_between_hosts_can_not_be_read_on_the_wire(short_folder):
    if why := impossible():
        pytest.skip(why)
    program = SUPPORT / "transports_on_hosts.py"
    command = in_hall([sys.executable, str(program), str(short_folder)])
    environment = os.environ | {"PYTHONPATH": OF_PROGRAMS}
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=patience(100))
    assert done.returncode == 0, done.stderr[-5_000:]
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["in_order"]
    assert seen["carried"] > 2_000 * len("what a record says"), "the records went over the wire"
    assert seen["secret"] == 0
    assert seen["plain"] == 1, "what is not encrypted would have been seen"
