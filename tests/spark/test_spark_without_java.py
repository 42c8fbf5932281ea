"""Spark that evenflow starts: a machine without Java gets one sentence, and no traceback of Spark's."""

from __future__ import annotations

import os
import subprocess
import sys


def test_a_benchmark_with_spark_but_without_java_ends_with_one_sentence(tmp_path):
    command = [sys.executable, "-m", "evenflow", "bench", "data", "--folder", str(tmp_path / "data"), "--rows", "10"]
    ended = subprocess.run(command, env={**os.environ, "JAVA_HOME": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert ended.stderr.splitlines()[-1].startswith("error: Spark needs Java 17 or newer, in JAVA_HOME or on the PATH")
