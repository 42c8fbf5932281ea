"""Work in the background of a measurement: an error in it is not lost."""

from __future__ import annotations

import threading

import pytest
from patience import patience

from evenflow.bench.harness.background import Background


class Steps(Background):
    """Fails in its second step."""

    def __init__(self):
        super().__init__(0.001, "steps")
        self.done, self.ended = 0, threading.Event()

    def _step(self):
        if self.done:
            self.ended.set()
            raise ValueError("no more")
        self.done += 1


def test_an_error_of_a_step_is_raised_at_the_end():
    with pytest.raises(ValueError, match="no more"), Steps() as steps:
        assert steps.ended.wait(patience(60))


def test_an_error_of_the_measurement_comes_before_that_of_a_step():
    def measure(steps):
        assert steps.ended.wait(patience(60))
        raise KeyError("the measurement's")

    with pytest.raises(KeyError, match="the measurement's"), Steps() as steps:
        measure(steps)
