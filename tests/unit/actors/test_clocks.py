from __future__ import annotations

import time

from evenflow.actors.clocks import Stopwatch


def test_only_the_time_between_start_and_stop_counts(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    watch = Stopwatch()
    watch.stop()
    now[0] += 1
    watch.start()
    now[0] += 2
    watch.start()
    assert watch.seconds == 2
    now[0] += 3
    watch.stop()
    now[0] += 10
    assert watch.seconds == 5
