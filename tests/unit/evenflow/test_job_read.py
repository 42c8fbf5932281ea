"""Keys of a running job are read, in this process: the values of each kind of state, and the errors of what can't be read."""

from __future__ import annotations

import re
import time

import pytest
from patience import patience

import evenflow as ef
from evenflow.testing.settings import changed

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")

ROWS = [
    {"dest": "JFK", "day": 1, "price": 10.5, "item": 0},
    {"dest": "JFK", "day": 2, "price": 2.0, "item": 1},
    {"dest": "LAX", "day": 1, "price": 1.0, "item": 2},
    {"dest": None, "day": 1, "price": 4.0, "item": 3},
]


class Stops(ef.KeyedFunction):
    days = ef.list_state()
    seen = ef.value_state(0)
    recent = ef.value_state(ttl="1s")

    def on_row(self, key, row, context):
        self.days.append(row["day"])
        if row["day"] == 1:
            self.recent = row["item"]


def total(state, row):
    return (state or 0.0) + row["price"], None


def at_first(partition, position):
    """Give the rows, and none any more."""
    yield ROWS if position is None else [], len(ROWS)
    while True:
        yield None


def make_flow():
    flow = ef.Dataflow("flights")
    rows = flow.read(ef.from_generator(at_first, event_time="item", unit="s", poll_every="10ms"))
    keyed = rows.key_by("dest")
    out = {
        "totals": keyed.aggregate(n=ef.count(), high=ef.max("price"), emit="update"),
        "finals": keyed.aggregate(n=ef.count(), price=ef.mean("price"), emit="final"),
        "days": rows.key_by("dest", "day").aggregate(n=ef.count()),
        "prices": keyed.stateful_map(total),
        "stops": keyed.process(Stops()),
        "hours": keyed.window(ef.tumbling("1h")).aggregate(n=ef.count()),
        "once": keyed.deduplicate(),
        "plain": rows.map(lambda row: row),
    }
    for name, stream in out.items():
        stream.named(name).write(ef.to_callback(lambda row: None, name=f"to_{name}"))
    return flow


def run(**config):
    return make_flow().run(runtime="local", config=changed(ef.JobConfig(parallelism=2), **config))


def awaited(job, operator, key, value):
    """Read until the value is there: each operator has processed all rows at its own time."""
    deadline = time.monotonic() + patience(60)
    while (found := job.read(operator, key)) != value:
        assert time.monotonic() < deadline, f"{operator}: {found}"
    return True


def over(job):
    job.cancel()
    job.wait("60s")


VALUES = [
    ("totals", "JFK", {"dest": "JFK", "n": 2, "high": 10.5}),
    ("totals", None, {"dest": None, "n": 1, "high": 4.0}),
    ("finals", "JFK", {"dest": "JFK", "n": 2, "price": 6.25}),
    ("days", ("JFK", 2), {"dest": "JFK", "day": 2, "n": 1}),
    ("prices", "JFK", 12.5),
    ("prices", "LAX", 1.0),
    ("stops", "JFK", {"days": [1, 2]}),  # `recent` has expired
]


@pytest.mark.parametrize("backend", ["memory", pytest.param("lmdb", marks=pytest.mark.slow)])
def test_value_of_a_key_is_its_row_its_state_or_its_states(backend, tmp_path):
    job = run(state={"backend": backend, "dir": str(tmp_path)})
    for operator, key, value in VALUES:
        assert awaited(job, operator, key, value)
    for operator in ("totals", "finals", "prices", "stops"):
        assert job.read(operator, "nowhere") is None
    job.migrate("totals", groups=range(64), to=1)
    assert job.read("totals", "JFK") == {"dest": "JFK", "n": 2, "high": 10.5}
    over(job)


WRONG = [
    ("totals", 7, "operator `totals`: its key column `dest` is string, and 7 is int64: give a key of that type"),
    ("days", ("JFK", "2"), "its key column `day` is int64, and '2' is string"),
    ("days", "JFK", "operator `days` has keys of 2 columns, and 'JFK' has 1"),
    ("hours", "JFK", "operator `hours` has the state of aggregates in windows, in which a key has no one value"),
    ("once", "JFK", "operator `once` has the state of a deduplicate"),
    ("plain", "JFK", "operator `plain` has no state by key; operators whose keys can be read: totals, finals, days, prices, stops"),
    ("to_totals", "JFK", "operator `to_totals` has no state by key"),
    ("nothing", "JFK", "has no operator `nothing`"),
    ("totals", {"dest": "JFK"}, "this can't be a key"),
]


def test_other_keys_are_refused_with_advice():
    job = run()
    assert awaited(job, "totals", "JFK", VALUES[0][2])
    assert awaited(job, "days", ("JFK", 2), VALUES[3][2])
    for operator, key, words in WRONG:
        with pytest.raises(ef.RequestError, match=re.escape(words)):
            job.read(operator, key)
    assert job.status().state.value == "running"
    over(job)
    with pytest.raises(ef.JobNotRunningError, match="job `flights` is cancelled: keys can only be read while it runs"):
        job.read("totals", "JFK")


LARGEST = 2**64 - 1


def test_unsigned_keys_that_no_signed_type_holds_are_balanced_read_and_moved():
    def large(_, position):
        number = position or 0
        while True:
            yield [{"key": LARGEST - (number + place) % 3} for place in range(30)], number + 30

    flow, out = ef.Dataflow("large-keys"), []
    rows = flow.read(ef.from_generator(large, schema={"key": "uint64"}, poll_every="1ms"))
    rows.key_by("key").aggregate(n=ef.count()).named("count").write(ef.to_list(out))
    job = flow.run(runtime="local", config=ef.JobConfig(parallelism=2, metrics=ef.MetricsConfig(window="50ms")))
    deadline = time.monotonic() + patience(30)
    while LARGEST not in [key for key, _ in job.load("count").hot_keys]:
        assert time.monotonic() < deadline, "the load of the keys was not measured in time"
        time.sleep(0.01)
    assert job.read("count", LARGEST)["n"] > 0
    assert job.migrate("count", keys=[LARGEST], to=0).state == "done"
    assert job.migrate("count", keys=[LARGEST], to=1).keys_moved == 1
    over(job)
