"""The unit tests' own guard stops sleeping, Ray and Spark."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest


def test_a_unit_test_cannot_sleep():
    with pytest.raises(pytest.fail.Exception, match=r"slept for 0.001 s"):
        time.sleep(0.001)


@pytest.mark.parametrize(
    ("command", "system"),
    [(["/opt/ray/raylet", "--node"], "Ray"), (["/opt/spark/bin/spark-submit"], "Spark"), (["java", "-version"], "Spark")],
)
def test_a_unit_test_cannot_start_a_cluster(command, system):
    with pytest.raises(pytest.fail.Exception, match=f"started {system}"):
        subprocess.run(command, check=True)


def test_a_unit_test_may_run_another_python():
    assert subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, check=True).stdout == b"1\n"
