"""A check ends with a few lines that name every part's failures, and how to run each of them alone."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

PATH = Path(__file__).parents[2] / ".ci" / "summary.py"
spec = importlib.util.spec_from_file_location("summary", PATH)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)

PASSED = "...\n======= 3 passed in 0.21s =======\n"
FAILED = """
======= FAILURES =======
tests/a.py:3: in test_a
======= short test summary info =======
FAILED tests/a.py::test_a[x - y] - assert [1] == [2]
ERROR tests/b.py - ImportError: no module
======= 1 failed, 2 passed, 1 error in 0.30s =======
"""
STYLE = """
ENG001 a rule
engine/batch.py:3: error: Incompatible types  [assignment]
engine/batch.py:9:1: error: Name "x" is not defined  [name-defined]
Would reformat: engine/batch.py
make: *** [Makefile:50: lint] Error 1
"""


@pytest.fixture(autouse=True)
def python(monkeypatch):
    monkeypatch.setattr(module, "PYTHON", Path.cwd() / ".venv/bin/python")


def test_failures_of_every_part_come_last():
    lines = module.summary("make test", {"cluster": (1, FAILED), "style": (2, STYLE), "unit": (0, PASSED)}, 61.2)
    assert lines == [
        "---- make test: failed after 61 s: cluster, style",
        "cluster: FAILED (exit code 1), 1 failed, 2 passed, 1 error in 0.30s",
        "style: FAILED (exit code 2)",
        "unit: passed, 3 passed in 0.21s",
        "cluster: FAILED tests/a.py::test_a[x - y] - assert [1] == [2]",
        "cluster:   alone: .venv/bin/python -m pytest 'tests/a.py::test_a[x - y]'",
        "cluster: ERROR tests/b.py - ImportError: no module",
        "cluster:   alone: .venv/bin/python -m pytest tests/b.py",
        "style: ENG001 a rule",
        "style: engine/batch.py:3: error: Incompatible types  [assignment]",
        'style: engine/batch.py:9:1: error: Name "x" is not defined  [name-defined]',
        "style: Would reformat: engine/batch.py",
    ]


def test_many_failures_in_all_parts_fit_into_24_lines():
    many = "\n".join(f"FAILED tests/a.py::test_{n} - {'x' * 500}" for n in range(100))
    lines = module.summary("make check", dict.fromkeys(("cluster", "style", "crashes", "unit"), (1, many)), 100)
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 240
    assert lines[-1] == "unit: ... and 197 more in the log"


def test_a_part_that_was_killed_shows_its_last_lines():
    killed = {"unit": (137, "collecting\n....\nKilled\n")}
    assert module.summary("make test", killed, 1)[-3:] == ["unit: collecting", "unit: ....", "unit: Killed"]


def test_a_part_that_ended_with_a_test_that_hung_shows_which():
    hung = {"cluster": (1, "tests/cluster/test_a.py ..Timeout (0:15:00)!\nThread 0x00 (most recent call first):\n  File a.py, line 9\n")}
    assert module.summary("make check", hung, 900)[-1] == "cluster: tests/cluster/test_a.py ..Timeout (0:15:00)!"


def test_all_passed_is_said_in_one_line():
    passed = ["---- make test: all passed in 200 s", "unit: passed, 3 passed in 0.21s"]
    assert module.summary("make test", {"unit": (0, PASSED)}, 200) == passed


def test_all_output_of_failed_parts_about_their_failures_is_shown():
    shown = module.details({"cluster": (1, f"the beginning\n{FAILED}"), "style": (2, "a line"), "unit": (0, PASSED)})
    assert shown[:3] == ["---- cluster:", "======= FAILURES =======", "tests/a.py:3: in test_a"]
    assert shown[-2:] == ["---- style:", "a line"]


def test_a_test_of_another_environment_is_run_with_its_python(monkeypatch):
    monkeypatch.setattr(module, "PYTHON", Path(sys.executable))
    assert module.alone("tests/a.py").endswith(f"{Path(sys.executable).name} -m pytest tests/a.py")
