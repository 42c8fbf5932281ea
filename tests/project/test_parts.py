"""`make test`, `make check` and `make nightly` run in parts: the tests that they name exist, and a part that fails is reported."""

from __future__ import annotations

import os
import runpy
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest
from patience import patience, until

ROOT = Path(__file__).parents[2]


@pytest.fixture
def parts(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / ".ci"))
    monkeypatch.chdir(ROOT)
    return runpy.run_path(str(ROOT / ".ci" / "parts.py"))


def test_simulations_that_a_part_names_are_there(parts):
    assert all((ROOT / path).is_file() for path in parts["SIMULATIONS"])


def test_no_two_modules_of_tests_have_one_name():
    """Check the names, since pytest imports modules by name, and rejects the second one when it collects all."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("*.py") if path.name != "conftest.py")
    assert not [name for name, count in names.items() if count > 1]


def test_an_unknown_part_is_refused(parts, capsys):
    assert parts["main"](["chaos"]) == 2
    assert "no such part: chaos; there are test, check, nightly, clusters, programs, unit, style, " in capsys.readouterr().out


@pytest.mark.parametrize(("tier", "mark"), [("test", "not slow"), ("check", "slow and not nightly"), ("nightly", "nightly")])
def test_every_test_is_in_a_part_of_its_tier(parts, tier, mark):
    """Check that a test that one part ignores is in another."""
    commands = [part.command for part in parts["TIERS"][tier] if "pytest" in part.command]
    assert all(command[command.index("-m", 3) + 1] == mark for command in commands)
    named = {ROOT / word for command in commands for word in command if word.startswith("tests/")}
    left_out = {ROOT / word.removeprefix("--ignore=") for command in commands for word in command if word.startswith("--ignore=")}
    assert {ROOT / "tests" / folder for folder in ("unit", "simulation", "project", "cluster", "spark", "docstrings")} <= named
    assert [path for path in left_out if not {path, path.parent / path.name} & named and path not in named] == []


def test_a_part_that_fails_is_reported(parts, capfd, monkeypatch):
    failing = parts["Part"]("failing", [sys.executable, "-c", "import sys; print('so it failed'); sys.exit(3)"])
    monkeypatch.setitem(parts["TIERS"], "test", [failing])
    assert parts["main"](["failing"]) == 3
    assert "so it failed" in capfd.readouterr().out


def test_parts_run_side_by_side_also_if_one_fails(parts, capfd, monkeypatch, tmp_path):
    """Run two parts that each wait for the other to have begun."""
    program = "import pathlib, sys, time; folder = pathlib.Path(sys.argv[1]); (folder / sys.argv[2]).touch()\n"
    program += "while len(list(folder.iterdir())) < 2: time.sleep(0.01)\nprint(sys.argv[2], 'met'); sys.exit(int(sys.argv[3]))"
    (tmp_path / "met").mkdir()
    part, met = parts["Part"], str(tmp_path / "met")
    both = [part(name, [sys.executable, "-c", program, met, name, code]) for name, code in (("first", "3"), ("second", "0"))]
    monkeypatch.setitem(parts["TIERS"], "test", both)
    monkeypatch.setitem(parts["main"].__globals__, "LOGS", tmp_path / "logs")
    monkeypatch.setattr("time.sleep", threading.Event().wait)
    monkeypatch.setattr("os.environ", dict(os.environ))
    assert parts["main"](["test"]) == 1
    assert [(tmp_path / "logs" / f"{name}.log").read_text() for name in ("first", "second")] == ["first met\n", "second met\n"]
    said = capfd.readouterr().out
    assert "first: FAILED (exit code 3)" in said
    assert "second: passed" in said


def test_parts_that_are_interrupted_report_what_they_have_found_and_others_are_terminated(parts, monkeypatch, tmp_path):
    program = "import signal, sys\n"
    program += "signal.signal(signal.SIGINT, lambda *_: print('one failed') or sys.exit(2) if sys.argv[2] == 'soon' else None)\n"
    program += "print('begun', flush=True)\nwhile True: signal.pause()"
    monkeypatch.setitem(parts["start"].__globals__, "LOGS", tmp_path)
    monkeypatch.setattr("time.sleep", threading.Event().wait)
    both = [parts["Part"](name, [sys.executable, "-c", program, "", name]) for name in ("soon", "never")]
    running = {part.name: parts["start"](part) for part in both}
    until(lambda: all("begun" in part.log.read_text() for part in both))
    parts["interrupt"](running)
    running["soon"].wait(patience(60))
    monkeypatch.setitem(parts["last_codes"].__globals__, "LAST_WORDS", 0.0)
    assert parts["last_codes"](running) == {"soon": 2, "never": -15}
    assert both[0].log.read_text() == "begun\none failed\n"
