from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from patience import patience

SLOWER = min(3.0, patience(1))
"""The factor by which the demo is slowed down on a busy machine. At a fifth of its rate, its workers have hardly anything to do."""

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def demo_check(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    from demo import check

    return check


@pytest.fixture
def folder():
    """Provide a folder with a short path: that of `tmp_path` is too long for a Unix socket."""
    with tempfile.TemporaryDirectory(prefix="demo-") as name:
        yield Path(name)


def start_demo(output: Path, months: int, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(EXAMPLES / "delays.py"), "--months", str(months), "--output", str(output), *options]
    environment = {**os.environ, "TMPDIR": str(output.parent / "tmp"), "COLUMNS": "100"}
    (output.parent / "tmp").mkdir()
    # A separate group gets the signal like a terminal's foreground group.
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, process_group=0)


def traces(demo: subprocess.Popen[str], output: Path) -> list[Path]:
    """Return the remains of the demo's own folder, and of the engine's."""
    return [*Path("/tmp").glob(f"delays-{demo.pid}-*"), *(output.parent / "tmp").glob("evenflow-*")]


def group_members(group: int) -> list[str]:
    listing = subprocess.run(["ps", "-A", "-o", "pgid=,stat=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listing.splitlines()]
    return [row[2] for row in rows if int(row[0]) == group and not row[1].startswith("Z")]


def assert_nothing_runs(group: int) -> None:
    """Assert that the group's processes end. Python's resource trackers outlive Ray's processes by a moment."""
    deadline = time.monotonic() + patience(60)
    while left := group_members(group):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


@pytest.mark.timeout(900)
def test_both_acts_equal_spark_the_second_moves_keys_automatically_and_only_results_remain(folder):
    output = folder / "out"
    with start_demo(output, 1, "--moves", "--scales", "--slower", f"{SLOWER}") as demo:
        printed, _ = demo.communicate(timeout=patience(600))
    assert demo.returncode == 0, printed
    first, second = printed.split("Second act")
    assert "State moved between the workers" in first
    assert "Operators got another number of workers 6 times meanwhile." in first
    assert "Check: all 2,659 rows are equal to those of the same query in Spark." in first
    assert "27,004 records" in first
    assert "balancer, totals: moves" in second
    assert re.search("scaling 0 of `totals` from 2 to 3 workers done", second)
    assert re.search("upgrade 0 of `totals` to version 2 done", second)
    assert "max / mean" in second
    equal = re.search("Check: all ([0-9,]+) rows are equal to those of the same query in Spark.", second)
    assert equal
    assert int(equal[1].replace(",", "")) >= 2_600_000
    assert (output / "delays.png").stat().st_size > 10_000
    assert pq.read_table([*(output / "delays.parquet").glob("*.parquet")]).num_rows == 2_659
    assert_nothing_runs(demo.pid)
    assert traces(demo, output) == []


@pytest.mark.timeout(400)
def test_ctrl_c_ends_the_demo_and_all_it_started(folder):
    output = folder / "out"
    with start_demo(output, 12, "--act", "1") as demo:
        assert demo.stdout is not None
        deadline = time.monotonic() + patience(250)
        while not (output / "delays.parquet/_spark_metadata/0").exists():  # the first results
            assert demo.poll() is None, demo.stdout.read()
            assert time.monotonic() < deadline, "the demo had no results in time"
            time.sleep(0.05)
        os.killpg(demo.pid, signal.SIGINT)
        printed, _ = demo.communicate(timeout=patience(100))
    assert demo.returncode == 130, printed
    assert "Stopped." in printed
    assert_nothing_runs(demo.pid)
    assert traces(demo, output) == []


def test_a_wrong_row_fails_the_check(demo_check):
    right = pa.table({"dest": ["ATL", "ORD"], "mean": [1.0, 2.0]})
    wrong = pa.table({"dest": ["ATL", "ORD"], "mean": [1.0, 2.0000000000000004]})
    comparison = demo_check.compare(wrong, right)
    assert not comparison.equal
    assert comparison.missing == [("ORD", 2.0)]
    assert comparison.unexpected == [("ORD", 2.0000000000000004)]


def test_two_empty_tables_are_no_success(demo_check):
    empty = pa.table({"dest": pa.array([], pa.string())})
    assert not demo_check.compare(empty, empty).equal
