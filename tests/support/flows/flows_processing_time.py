"""Flows that simulated runs share: processing-time timers and windows. When they fire and close differs from run to run; the rows show
whether each timer fired once and none early, and whether each row is in one window.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from disordered import disordered, source

import evenflow as ef

WAITS = ("10ms", "200ms", "1s", "4s")


class Waiting(ef.KeyedFunction):
    """Emits each row when a timer fires that was set for it, or one that this timer has set."""

    waiting = ef.map_state()

    def on_row(self, key: Any, row: dict[str, Any], context: ef.KeyContext) -> Any:
        seq = row["seq"]
        if seq % 7 == 3:
            context.cancel(context.timer_after(timedelta(microseconds=9_000 + seq)), time_domain="processing")
        self._wait([seq, seq % 3], context)

    def on_timer(self, key: Any, time: Any, context: ef.KeyContext) -> Any:
        early = context.now < time and not context.ended
        for seq, left in self.waiting.pop(time):
            if left:
                self._wait([seq, left - 1], context)
            else:
                yield {"key": key, "seq": seq, "early": early, "domain": context.time_domain}

    def _wait(self, what: list[int], context: ef.KeyContext) -> None:
        at = context.timer_after(WAITS[what[0] % 4])
        self.waiting[at] = [*self.waiting.get(at, []), what]


def timers_by_the_clock() -> ef.Dataflow:
    """Rows without event time wait for timers."""
    flow = ef.Dataflow("clock_timers")
    flow.read(ef.from_items(disordered())).key_by("key").process(Waiting()).write(ef.to_list([]))
    return flow


class Telling(Waiting):
    """Tells of each row whether the stream had ended."""

    def on_timer(self, key: Any, time: Any, context: ef.KeyContext) -> Any:
        for row in super().on_timer(key, time, context):
            yield {**row, "ended": context.ended}


def timers_that_tell_when() -> ef.Dataflow:
    """Return a flow whose rows depend on the run."""
    flow = ef.Dataflow("told_timers")
    flow.read(ef.from_items(disordered())).key_by("key").process(Telling()).write(ef.to_list([]))
    return flow


class Both(Waiting):
    """Emits a row of each second of event time too, when the watermark passes it."""

    seconds = ef.map_state()

    def on_row(self, key: Any, row: dict[str, Any], context: ef.KeyContext) -> Any:
        assert context.time_domain is None
        second = context.time.replace(microsecond=0) + timedelta(seconds=1)
        self.seconds[second] = self.seconds.get(second, 0) + 1
        context.timer(second)
        super().on_row(key, row, context)

    def on_timer(self, key: Any, time: Any, context: ef.KeyContext) -> Any:
        if context.time_domain == "processing":
            yield from super().on_timer(key, time, context)
        else:
            assert context.time == time
            yield {"key": key, "seq": -self.seconds.pop(time), "early": context.watermark < time, "domain": context.time_domain}


def timers_of_both_kinds() -> ef.Dataflow:
    """Rows of timers are in windows of event time, none late; which ones depends on the run."""
    flow = ef.Dataflow("both_timers")
    rows = flow.read(source()).key_by("key").process(Both())
    rows.write(ef.to_list([], name="rows"))
    counts = rows.key_by("domain").window(ef.tumbling("1s")).aggregate(n=ef.count(), total=ef.sum("seq"))
    counts.key_by("domain").aggregate(n=ef.sum("n"), total=ef.sum("total"), emit="final").write(ef.to_list([], name="totals"))
    return flow


class Stamped(ef.KeyedFunction):
    """Adds the clock to rows."""

    def on_row(self, key: Any, row: dict[str, Any], context: ef.KeyContext) -> Any:
        yield {"key": row["key"], "seq": row["seq"], "seen": context.now}


def windows_by_the_clock() -> ef.Dataflow:
    """Rows are in the windows in which they arrive, so after they were seen upstream; the window of a row depends on the run."""
    flow = ef.Dataflow("clock_windows")
    rows = flow.read(ef.from_items(disordered())).key_by("lane").process(Stamped()).key_by("key")
    windows = rows.window(ef.tumbling("200ms", time="processing")).aggregate(seqs=ef.collect("seq"), newest=ef.max("seen"))
    windows.flat_map(lambda row: [{"key": row["key"], "seq": seq} for seq in row["seqs"]]).write(ef.to_list([], name="rows"))
    windows.filter(lambda row: row["newest"] >= row["window_end"]).select("key").write(ef.to_list([], name="wrong"))
    parts = windows.key_by("key", "window_start").aggregate(parts=ef.count(), emit="final")
    parts.filter(lambda row: row["parts"] > 1).write(ef.to_list([], name="repeated"))
    sliding = rows.window(ef.sliding("600ms", every="200ms", time="processing")).aggregate(n=ef.count())
    sliding.key_by("key").aggregate(n=ef.sum("n"), emit="final").write(ef.to_list([], name="thrice"))
    sessions = rows.window(ef.session("100ms", time="processing")).aggregate(n=ef.count(), newest=ef.max("seen"))
    sessions.key_by("key").aggregate(n=ef.sum("n"), emit="final").write(ef.to_list([], name="in_sessions"))
    sessions.filter(lambda row: row["newest"] >= row["window_end"]).select("key").write(ef.to_list([], name="wrong_sessions"))
    return flow


FLOWS = (timers_by_the_clock, timers_of_both_kinds)
