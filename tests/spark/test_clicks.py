from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "clicks.py"


@pytest.mark.timeout(300)
def test_clicks_from_a_broker_become_what_spark_computes_of_them():
    command = [sys.executable, "-W", "ignore", str(EXAMPLE), "--local", "--clicks", "3000", "--seed", "7"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    told = re.findall(r"(\w+): ([\d,]+) rows; compared with Spark's 0 are missing and 0 are wrong", done.stdout)
    assert [what for what, _ in told] == ["purchases", "visits"]
    assert all(int(count.replace(",", "")) > 100 for _, count in told)
