"""`make test` ends with a few lines that name every part's failures."""

from __future__ import annotations

import importlib.util
from pathlib import Path

PATH = Path(__file__).parents[2] / ".ci" / "summary.py"
spec = importlib.util.spec_from_file_location("summary", PATH)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)

PASSED = "...\n======= 3 passed in 0.21s =======\n"
FAILED = """
tests/a.py:3: in test_a
FAILED tests/a.py::test_a - assert 1 == 2
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


def test_failures_of_every_part_come_last():
    lines = module.summary({"cluster": (1, FAILED), "style": (2, STYLE), "unit": (0, PASSED)})
    assert lines == [
        "---- summary: failed: cluster, style",
        "cluster: FAILED (exit code 1), 1 failed, 2 passed, 1 error in 0.30s",
        "style: FAILED (exit code 2)",
        "unit: passed, 3 passed in 0.21s",
        "cluster: FAILED tests/a.py::test_a - assert 1 == 2",
        "cluster: ERROR tests/b.py - ImportError: no module",
        "style: ENG001 a rule",
        "style: engine/batch.py:3: error: Incompatible types  [assignment]",
        'style: engine/batch.py:9:1: error: Name "x" is not defined  [name-defined]',
        "style: Would reformat: engine/batch.py",
    ]


def test_many_failures_in_all_parts_fit_into_24_lines():
    many = "\n".join(f"FAILED tests/a.py::test_{n} - {'x' * 500}" for n in range(100))
    lines = module.summary(dict.fromkeys(("cluster", "style", "crashes", "unit"), (1, many)))
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 240
    assert lines[-1] == "unit: ... and 97 more in the log"


def test_a_part_that_was_killed_shows_its_last_lines():
    assert module.summary({"unit": (137, "collecting\n....\nKilled\n")})[-3:] == ["unit: collecting", "unit: ....", "unit: Killed"]


def test_all_passed_is_said_in_one_line():
    assert module.summary({"unit": (0, PASSED)}) == ["---- summary: all passed", "unit: passed, 3 passed in 0.21s"]
