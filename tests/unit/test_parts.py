"""`make test` runs in parts: the tests that they name are there, and a part that fails is heard of."""

from __future__ import annotations

import runpy
import sys
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


def test_an_unknown_part_is_refused(parts, capsys):
    assert parts["main"](["chaos"]) == 2
    assert "no such part: chaos; there are hosts+spark, losses, cluster, style, connectors, unit, simulations" in capsys.readouterr().out


def test_a_part_that_fails_is_heard_of(parts, capfd, monkeypatch):
    failing = parts["Part"]("failing", [sys.executable, "-c", "import sys; print('so it failed'); sys.exit(3)"])
    monkeypatch.setitem(parts["main"].__globals__, "PARTS", [failing])
    assert parts["main"](["failing"]) == 3
    assert "so it failed" in capfd.readouterr().out
