"""`make test` runs in parts: the tests that they name are there, and a part that fails is heard of."""

from __future__ import annotations

import runpy
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def parts(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / ".ci"))
    monkeypatch.chdir(ROOT)
    return runpy.run_path(str(ROOT / ".ci" / "parts.py"))


@pytest.mark.parametrize("named", ["SIMULATIONS", "LOSSES", "HOSTS"])
def test_tests_that_a_part_names_are_there(parts, named):
    assert all((ROOT / path).is_file() for path in parts[named])


def test_no_two_modules_of_tests_have_one_name():
    """pytest imports them by name, and refuses the second one when it collects all."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("*.py") if path.name != "conftest.py")
    assert not [name for name, count in names.items() if count > 1]


def test_an_unknown_part_is_refused(parts, capsys):
    assert parts["main"](["chaos"]) == 2
    assert "no such part: chaos; there are hosts+spark, cluster, losses, style, connectors, unit, simulations" in capsys.readouterr().out


def test_a_part_that_fails_is_heard_of(parts, capfd, monkeypatch):
    failing = parts["Part"]("failing", [sys.executable, "-c", "import sys; print('so it failed'); sys.exit(3)"])
    monkeypatch.setitem(parts["main"].__globals__, "PARTS", [failing])
    assert parts["main"](["failing"]) == 3
    assert "so it failed" in capfd.readouterr().out


def test_a_part_begins_when_the_one_before_it_has_ended_also_if_that_failed(parts, capfd, monkeypatch, tmp_path):
    part, program = parts["Part"], "import pathlib, sys; print(*sorted(p.name for p in pathlib.Path(sys.argv[1]).iterdir())); "
    first = part("first", [sys.executable, "-c", program + "pathlib.Path(sys.argv[1], 'done').touch(); sys.exit(3)", str(tmp_path)])
    second = part("second", [sys.executable, "-c", program, str(tmp_path)], after="first")
    monkeypatch.setitem(parts["main"].__globals__, "PARTS", [second, first])
    monkeypatch.setitem(parts["main"].__globals__, "LOGS", tmp_path / "logs")
    monkeypatch.setattr("time.sleep", threading.Event().wait)
    assert parts["main"]([]) == 1
    assert (tmp_path / "logs" / "first.log").read_text().split() == ["logs"]
    assert (tmp_path / "logs" / "second.log").read_text().split() == ["done", "logs"]
    assert "second: passed" in capfd.readouterr().out
