"""Programs with a broadcast stream, as users write them: rules that ended long ago, a program that is started again, savepoints."""

from __future__ import annotations

import threading
import time

import pytest
from patience import patience

import evenflow as ef

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")

RULES = [{"name": "big", "over": 5, "at": 0}, {"name": "small", "over": 1, "at": 1}, {"name": "big", "over": 3, "at": 2}]


class Flags(ef.KeyedFunction):
    """Emits the rules that a key's rows have met, once the watermark has passed them: with the rules of before."""

    waiting, seen = ef.map_state(), ef.value_state(0)

    def on_row(self, key, row, context):
        self.waiting[row["n"]] = None
        self.seen += 1
        context.timer(context.time)

    def on_timer(self, key, time, context):
        n = time.timestamp()
        if n in self.waiting:
            del self.waiting[n]
            yield {"n": int(n), "rules": [name for name, rule in context.broadcast.items() if n > rule["over"]]}


class Numbers:
    """A stream of seconds without an end; it gives `burst` numbers, then waits until it is let go on. `asked(n)` waits for number n."""

    def __init__(self, burst):
        self.limit, self._changed, self._asked = burst, threading.Condition(), 0

    def __call__(self, partition, position):
        number = position or 0
        while True:
            with self._changed:
                self._asked = max(self._asked, number)
                self._changed.notify_all()
            if number >= self.limit:
                yield None
                continue
            yield {"key": "ab"[number % 2], "n": number}, number + 1
            number += 1

    def asked(self, number):
        with self._changed:
            assert self._changed.wait_for(lambda: self._asked >= number, patience(30))


def written(numbers, sink, *, timed=True):
    """Return the flow; with `timed` the rules have event time, and end."""
    flow = ef.Dataflow("flags")
    rules = flow.read(ef.from_items(RULES, event_time="at", unit="s", name="rules") if timed else ef.from_generator(endless, name="rules"))
    paid = flow.read(ef.from_generator(numbers, event_time="n", unit="s", name="numbers"))
    paid.key_by("key").process(Flags(), rules.broadcast("name")).named("flags").write(sink)
    return flow


def endless(partition, position):
    yield from ((rule, place) for place, rule in enumerate(RULES[position or 0 :], 1 + (position or 0)))
    while True:
        yield None


def run(flow, folder, state, **options):
    checkpoint = ef.CheckpointConfig(str(folder), interval="20ms")
    config = ef.JobConfig(
        parallelism=2, key_groups=16, checkpoint=checkpoint, network=ef.NetworkConfig(linger=0), state=ef.StateConfig(state)
    )
    return flow.run(runtime="local", config=config, **options)


def flags(folder):
    flow, out = ef.Dataflow("read"), []
    flow.read(ef.read_json(folder)).write(ef.to_list(out))
    flow.run(runtime="local").wait("60s")
    return {row["n"]: row["rules"] for row in out}


@pytest.mark.parametrize("state", ["memory", "lmdb"])
def test_rules_that_ended_are_there_when_the_program_is_started_again(tmp_path, state):
    numbers = Numbers(3)
    job = run(written(numbers, ef.write_json(tmp_path / "out", append=True)), tmp_path / "checkpoints", state)
    numbers.asked(3)
    job.stop()
    job.wait("60s")
    saved = ef.read_savepoint(ef.latest_checkpoint(tmp_path / "checkpoints", "flags"))
    assert saved.state("flags").column_names == ["key", "state"]
    numbers.limit = 8
    again = run(written(numbers, ef.write_json(tmp_path / "out", append=True)), tmp_path / "checkpoints", state)
    numbers.asked(8)
    again.stop(drain=True)
    again.wait("60s")
    found = flags(tmp_path / "out")
    assert sorted(found) == list(range(8))
    assert {n: found[n] for n in (4, 5, 6, 7)} == {n: ["big", "small"] for n in (4, 5, 6, 7)}


def test_rules_without_event_time_and_without_end_hold_no_timer_back(tmp_path):
    numbers, out = Numbers(8), []
    job = run(written(numbers, ef.to_list(out), timed=False), tmp_path, "memory")
    deadline, pause = time.monotonic() + patience(60), threading.Event()
    while len(out) < 7:  # the last number waits for the watermark
        assert not job.status().state.final, job.status().error
        assert time.monotonic() < deadline, f"only {out}"
        pause.wait(0.02)
    job.cancel()
    job.wait("60s")
    assert sorted(row["n"] for row in out) == list(range(len(out)))
