from __future__ import annotations

from evenflow.actors.clocks import Stopwatch


def test_only_the_time_between_start_and_stop_counts():
    now = [100.0]
    watch = Stopwatch(lambda: now[0])
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
