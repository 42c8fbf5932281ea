"""The stream whose rows tell which version of the code has written them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from evenflow.bench.harness.trace import TRACE
from evenflow.bench.recovery.output_log import KEYS, STATE_BYTES
from evenflow.bench.upgrade.stream import NEW, OLD, DueReader, VersionTrace, check, counting, touch, touch_anew
from evenflow.engine.batch import Batch
from evenflow.engine.plan.upgrade.comparison import compare

RATE = 1000


def read_all_keys(reader):
    while reader.position()[0] < KEYS:
        batch = reader.poll(131_072)
        assert batch.rows["created"].to_pylist() == [0] * batch.num_rows


def test_rows_after_the_keys_are_due_at_the_rate_also_for_a_reader_that_continues():
    reader, again = DueReader(RATE), DueReader(RATE)
    read_all_keys(reader)
    assert reader.position()[1] > 0
    again.seek([KEYS, 1])  # it began in 1970
    rows = again.poll(100).rows
    assert rows["created"].to_pylist() == [1 + n * 1_000_000 for n in range(100)]
    assert rows["seq"].to_pylist() == list(range(KEYS, KEYS + 100))


def test_a_reader_that_is_asked_for_few_rows_gives_them():
    reader = DueReader(500_000)
    reader.seek([KEYS, 1])
    assert reader.poll(10).num_rows == 10


def test_at_full_speed_rows_are_always_due():
    reader = DueReader(None)
    reader.seek([KEYS, 1])
    assert reader.poll(50).num_rows == 50
    assert reader.ready_in() == 0.0


def test_new_code_continues_the_count_of_the_old():
    state, old = touch(None, {"seq": 3, "created": 0})
    state, new = touch_anew(state, {"seq": KEYS + 3, "created": 1})
    assert (old["count"], old["version"]) == (1, OLD)
    assert (new["count"], new["version"]) == (2, NEW)
    assert len(state) == STATE_BYTES


def test_only_the_counting_operator_is_exchanged():
    old, new = (counting("upgrade", code, RATE)[0].plan(2) for code in (touch, touch_anew))
    changes = compare(old, new)
    assert changes.changed_stages == ("stateful_map",)
    assert not changes.needs_restart
    assert not changes.one_way


def test_a_sink_that_has_records_is_unchanged_in_the_new_program():
    (old, sink), (new, _) = counting("upgrade", touch, RATE), counting("upgrade", touch_anew, RATE)
    sink.deliver(np.zeros(1, TRACE).tobytes())
    assert not compare(old.plan(2), new.plan(2)).needs_restart


def test_the_trace_has_the_version_and_shows_wrong_counts():
    sink = VersionTrace()
    writer = sink.writer(0, 1)
    columns = {"seq": [KEYS, KEYS + 1, KEYS + 2], "created": [1, 2, 3], "count": [2, 2, 1], "version": [OLD, NEW, NEW]}
    writer.write(Batch(pa.record_batch(columns)))
    sink.deliver(writer.prepare(1)[0])
    assert sink.trace()["key"].tolist() == [OLD, NEW, -NEW]


def trace(rows, key=OLD):
    found = np.zeros(len(rows), TRACE)
    found["created"], found["key"] = np.array(rows) * 1_000_000 + 7, key
    return found


def test_a_trace_with_each_row_once_is_right():
    assert check(trace([3, 4, 5]), RATE) == "each of 3 rows once, with the right count"


@pytest.mark.parametrize(
    ("rows", "key", "problem"),
    [([3, 5], OLD, "1 are missing, 0 came twice, and 0"), ([3, 3, 4], OLD, "0 are missing, 1 came twice"), ([3], -NEW, "1 have a wrong")],
)
def test_rows_that_are_missing_come_twice_or_have_a_wrong_count_are_found(rows, key, problem):
    with pytest.raises(ValueError, match=problem):
        check(trace(rows, key), RATE)
