"""Steps are timed once, also where one calls another, and are themselves again afterwards."""

from __future__ import annotations

from itertools import count

from evenflow.bench import overhead_steps
from evenflow.bench.overhead_steps import timed


class Steps:
    def outer(self):
        return self.inner()

    def inner(self):
        return "done"


def test_a_step_inside_of_another_counts_once(monkeypatch):
    ticks = count()
    monkeypatch.setattr(overhead_steps.time, "thread_time", lambda: next(ticks))
    plain = Steps.outer
    with timed(((Steps, "outer"), (Steps, "inner"))) as spent:
        assert Steps().outer() == "done"  # begins at 0, the inner step at 1, ends at 2
        assert spent() == 2
        Steps().inner()
        assert spent() == 3
    assert Steps.outer is plain
