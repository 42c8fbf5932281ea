"""The harness of planted faults: the failures that count as found."""

from __future__ import annotations

import faults_in_tasks as faults
import flows
import pytest
from planting import MOST, Runs, assert_found, found

from evenflow.engine.task.alignment import Alignment
from evenflow.engine.task.task_event_time import TaskEventTime


def nothing(patch):
    patch.setattr(Alignment, "held", Alignment.held)


def broken_fault(patch):
    patch.setattr(TaskEventTime, "observe", lambda self, channel, watermark: self.there_is_no_such_method())


def test_code_without_a_fault_passes():
    assert found(nothing, Runs(flows.no_rows, 2)) is None
    with pytest.raises(AssertionError, match="nothing: none of 2 runs has shown it"):
        assert_found(nothing, Runs(flows.no_rows, 2))


def test_the_first_seed_that_shows_a_fault_is_reported_and_the_fault_is_removed():
    runs = Runs(flows.sliding_windows, 10)
    first = found(faults.watermark_of_the_fastest_input_counts, runs)
    assert first is not None
    assert "late" in str(first.error)
    assert found(nothing, runs) is None


def test_error_in_the_code_of_a_fault_does_not_count():
    with pytest.raises(AssertionError, match="broken_fault is broken itself: AttributeError"):
        assert_found(broken_fault, Runs(flows.running_updates, 3))


def test_more_runs_than_are_allowed_are_refused():
    with pytest.raises(AssertionError):
        assert_found(nothing, Runs(flows.no_rows, MOST + 1))
