"""A line says how far a check is, from the logs of its parts."""

from __future__ import annotations

import importlib.util
import io
import sys
from pathlib import Path

import pytest

PATH = Path(__file__).parents[2] / ".ci" / "progress.py"
spec = importlib.util.spec_from_file_location("progress", PATH)
module = importlib.util.module_from_spec(spec)
sys.modules["progress"] = module  # where its dataclasses look for their annotations
spec.loader.exec_module(module)

LOG = """\
===== test session starts =====
collected 120 items / 20 deselected / 100 selected

tests/unit/test_a.py ..........................................................F. [ 60%]
.......                                                                  [ 67%]
tests/unit/test_b.py .x.E"""


def test_tests_are_counted_while_pytest_writes():
    assert module.counted(LOG) == module.Tests(done=71, failed=2, total=100)


def test_nothing_is_counted_before_they_are_collected():
    assert module.counted("===== test session starts =====\n") == module.Tests()


def test_dots_in_the_output_of_failures_are_not_counted():
    assert module.counted(f"{LOG}\n===== FAILURES =====\n....\nFFFF\n") == module.counted(LOG)


@pytest.fixture
def progress(tmp_path, monkeypatch):
    logs = {name: tmp_path / f"{name}.log" for name in ("unit", "style", "simulations")}
    logs["unit"].write_text(LOG)
    logs["style"].touch()
    monkeypatch.setattr("time.monotonic", lambda: 100.0)
    found = module.Progress("make test", logs, io.StringIO())
    monkeypatch.setattr("time.monotonic", lambda: 161.0)
    return found


def test_a_line_has_what_runs_and_what_waits(progress):
    assert progress.line() == "[  61 s] make test: 71 of 100 tests, 2 failed; unit 71/100, style; waiting: simulations"


def test_a_part_that_ends_is_reported_at_once(progress):
    progress.end("unit", 1, 41.6)
    assert progress._out.getvalue() == "[  61 s] unit FAILED: 71 tests, 42 s of a processor\n"
    assert progress.line() == "[  61 s] make test: 71 of 100 tests, 2 failed; style; waiting: simulations"


def test_a_log_has_a_line_every_30_seconds(progress, monkeypatch):
    for second in range(161, 221):
        monkeypatch.setattr("time.monotonic", lambda second=second: float(second))
        progress.show()
    assert [line[:8] for line in progress._out.getvalue().splitlines()] == ["[  61 s]", "[  91 s]"]


def test_a_terminal_has_one_line_that_is_written_over(progress, monkeypatch):
    progress._terminal = True
    progress.show()
    monkeypatch.setattr("time.monotonic", lambda: 170.0)
    progress.show()
    progress.clear()
    written = progress._out.getvalue()
    assert "\n" not in written
    assert written.count("\r") == 4
