from __future__ import annotations

import pyarrow as pa

from evenflow.bench.harness.sinks import LatencyWriter
from evenflow.bench.recovery.live_stream import LiveReader, OutputWriter, count
from evenflow.bench.recovery.output_log import KEYS, STATE_BYTES, OutputLog, outputs
from evenflow.engine.batch import Batch


def read_all_keys(reader):
    rows = []
    while sum(map(len, rows)) < KEYS:
        rows.append(reader.poll(131_072).rows["seq"].to_pylist())
    return [seq for batch in rows for seq in batch]


def test_all_keys_come_at_once_and_the_rest_when_it_is_due():
    reader = LiveReader(KEYS, KEYS)
    assert read_all_keys(reader) == list(range(KEYS))
    assert reader.poll(10) is None or reader.ready_in() <= 0.01
    assert not reader.finished


def test_a_reader_that_seeks_back_emits_missed_rows_at_once():
    reader, again = LiveReader(KEYS, KEYS), LiveReader(KEYS, KEYS)
    again.seek([KEYS, 1])  # it began in 1970
    assert again.poll(1000).rows["seq"].to_pylist() == list(range(KEYS, KEYS + 1000))
    assert again.position() == [KEYS + 1000, 1]
    assert reader.position() == [0, 0]


def test_the_first_batch_of_a_reader_is_logged(tmp_path):
    reader = LiveReader(KEYS, KEYS, OutputLog(str(tmp_path)))
    reader.poll(10)
    reader.poll(10)
    assert [(first.newest, first.rows) for first in outputs(str(tmp_path))] == [(9, 10)]


def test_state_has_64_bytes_whatever_the_count():
    state, row = count(count(None, {"seq": 3})[0], {"seq": 4})
    assert len(state) == STATE_BYTES
    assert row == {"seq": 4, "n": 2}


def test_a_batch_of_results_is_a_line(tmp_path):
    writer = OutputWriter(str(tmp_path), KEYS, KEYS)
    writer.write(Batch(pa.record_batch({"seq": [3, KEYS], "n": [1, 1]})))
    assert [(output.newest, output.rows, output.wrong) for output in outputs(str(tmp_path))] == [(KEYS, 2, 1)]
    assert writer.prepare(1) == []
    writer.close()


def test_rows_without_a_time_of_creation_have_no_latency():
    writer = LatencyWriter()
    writer.write(Batch(pa.record_batch({"created": [0, 0]})))
    assert writer.prepare(1) == []


def test_a_poll_of_few_rows_returns_rows():
    reader = LiveReader(KEYS, KEYS)
    reader.seek([KEYS, 1])
    assert reader.poll(3).num_rows == 3
