from __future__ import annotations

import pytest

from evenflow.bench.harness.errors import BenchmarkError
from evenflow.bench.migration.memory import Memory


def test_memory_that_remains_after_a_move_is_not_memory_for_the_move():
    kept = [(0.0, 100.0), (1.0, 120.0), (3.0, 125.0)]
    assert Memory.around(kept, begun=0.5, ended=1.5, before=1.0).transient == 0.0


def test_memory_that_was_there_before_is_not_memory_for_the_move():
    freed = [(0.0, 100.0), (1.0, 101.0), (3.0, 80.0)]
    assert Memory.around(freed, begun=0.5, ended=1.5, before=1.0).transient == 1.0


def test_samples_before_the_steady_phase_do_not_count():
    started = [(0.0, 10.0), (5.0, 100.0), (6.0, 100.0), (8.0, 100.0)]
    assert Memory.around(started, begun=5.5, ended=6.5, before=1.0).scatter == 0.0


def test_a_move_between_two_samples_is_an_error():
    with pytest.raises(BenchmarkError, match="1 samples before, 0 during and 1 after"):
        Memory.around([(0.0, 1.0), (3.0, 1.0)], begun=0.5, ended=1.5, before=1.0)
