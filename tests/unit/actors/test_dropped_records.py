"""Views of a job contain some of its dropped records, as text, and none if that is not wanted."""

from __future__ import annotations

import pytest

import evenflow as ef
from evenflow.engine.dropped_records import CHARACTERS, MOST
from evenflow.scheduler.protocol.requests import ShowView

pytestmark = pytest.mark.usefixtures("waiting_for_jobs")

PATIENCE = "60s"


def dropped_records(flow, **metrics):
    """Return the dropped records in the last view of a finished job, by operator and kind."""
    job = flow.run(runtime="local", config=ef.JobConfig(metrics=ef.MetricsConfig(window="50ms", **metrics)))
    job.wait(PATIENCE)
    found = {}
    for record in job._runtime.ask(ShowView()).dropped_records:
        assert record.worker.startswith(("from_items", "parse", "add", "aggregate", "join"))
        assert record.time > 0
        found.setdefault((record.what.operator, record.what.kind), []).append(record.what)
    return found


def refusing(on_error, items=("1", "x", "2", "y")):
    flow = ef.Dataflow("f")
    parsed = flow.read(ef.from_items(list(items))).map(lambda row: {"n": int(row["item"])}, on_error=on_error).named("parse")
    if on_error == "dead_letter":
        parsed.dead_letters.write(ef.to_list([]))

    def add(state, row):
        if row["n"] == 2:
            raise ef.RecordError("add", "two is too much")
        return 1, row

    parsed.key_by("n").stateful_map(add, on_error="skip").named("add").write(ef.to_list([]))
    return flow


@pytest.mark.parametrize("on_error", ["skip", "dead_letter"])
def test_refused_records_are_reported_with_key_and_error(on_error):
    found = dropped_records(refusing(on_error))
    assert [(one.record, one.key) for one in found["parse", "refused"]] == [("{'item': 'x'}", ""), ("{'item': 'y'}", "")]
    assert found["parse", "refused"][0].error.startswith("ValueError: invalid literal for int()")
    (two,) = found["add", "refused"]
    assert (two.record, two.key, two.error) == ("{'n': 2}", "2", "two is too much")


def test_no_record_is_reported_where_samples_are_switched_off():
    assert dropped_records(refusing("skip"), samples=False) == {}


def test_few_records_are_reported_and_long_ones_are_cut():
    found = dropped_records(refusing("skip", [*"abcdefgh", "z" * 100_000]))["parse", "refused"]
    assert len(found) <= MOST
    long = dropped_records(refusing("skip", ["z" * 100_000]))["parse", "refused"]
    assert CHARACTERS <= len(long[0].record) < CHARACTERS + 40
    assert len(long[0].error) <= CHARACTERS
