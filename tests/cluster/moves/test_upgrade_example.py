"""The example of live upgrades runs as a program, and each sale is there once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from patience import patience

EXAMPLE = Path(__file__).parents[3] / "examples" / "upgrade.py"


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_code_is_exchanged_and_taken_back_in_mid_stream_and_each_sale_counts_once(cluster):
    environment = {**os.environ, "RAY_ADDRESS": cluster}
    command = [sys.executable, str(EXAMPLE)]
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=patience(200))
    assert done.returncode == 0, done.stdout + done.stderr[-3_000:]
    assert "upgrade 0 of `totals` to version 2 done in" in done.stdout
    assert re.search(r"upgrade 1 .* was rolled back: operator `totals`: the new code refused \d+ of \d+ records", done.stdout)
    rows, refused = re.search(r"sales: [\d,]+ by version 1, ([\d,]+) by version 2, .*; (\d+) refused", done.stdout).groups()
    assert int(rows.replace(",", "")) > 100
    assert int(refused) > 0
    assert "Each sale is there once." in done.stdout
