"""The benchmark of starts runs what it says that it measures."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from evenflow.bench.errors import BenchmarkError
from evenflow.bench.start import LOADING, SCRIPT, _output, _seconds_of_loading

SLEEP = time.sleep


@pytest.fixture(autouse=True)
def processes_may_be_waited_for(no_waiting_and_no_cluster, monkeypatch):
    """`subprocess` sleeps between two looks at a process that has a time-out."""
    monkeypatch.setattr(time, "sleep", SLEEP)


def test_the_script_ends_well():
    subprocess.run([sys.executable, "-c", SCRIPT], check=True)


def test_what_is_loaded_takes_time():
    (seconds,) = _seconds_of_loading(next(iter(LOADING)), 1, os.environ)
    assert seconds > 0


def test_a_part_that_fails_is_an_error_with_its_last_words():
    with pytest.raises(BenchmarkError, match="nothing works"):
        _output(["-c", "raise SystemExit('nothing works')"], os.environ)
