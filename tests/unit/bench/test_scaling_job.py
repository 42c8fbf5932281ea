from __future__ import annotations

import time

import numpy as np
import pytest

from evenflow.bench.scaling_course import Course, Phase
from evenflow.bench.scaling_job import READERS, WORDS, StepsSource, lost, words_of
from evenflow.bench.scaling_live import Lived, optimum, verdicts
from evenflow.bench.trace import TRACE, TraceSink

STEPS = [(10.0, 100.0), (5.0, 200.0)]


def test_rows_are_due_by_the_steps():
    source = StepsSource(STEPS, begun=1000.0)
    assert [source.offered(time) for time in (999.0, 1000.0, 1005.0, 1012.0, 2000.0)] == [0, 0, 500, 1400, 2000]
    assert source.due(np.array([0, 500, 1400])) == [1000.0, 1005.0, 1012.0]


def test_rate_is_that_of_the_present_step_and_nothing_before():
    now = time.time()
    assert [StepsSource(STEPS, now + start).rate for start in (5.0, -5.0, -12.0, -100.0)] == [0.0, 100.0, 200.0, 200.0]


def test_readers_share_all_rows_and_end():
    source = StepsSource(STEPS, begun=0.0)
    found = []
    for index in range(READERS):
        reader = source.reader(index, READERS)
        while (batch := reader.poll(64)) is not None:
            found += batch.rows.column("number").to_pylist()
        assert reader.finished
    assert sorted(found) == list(range(source.total))


def test_a_reader_goes_on_where_it_was_sought_to():
    source = StepsSource(STEPS, begun=0.0)
    reader, other = source.reader(1, READERS), source.reader(1, READERS)
    reader.poll(10)
    other.seek(reader.position())
    assert other.poll(3).rows.column("number").to_pylist() == [21, 23, 25]


def test_what_is_due_and_not_read_is_the_backlog():
    readers = [StepsSource(STEPS, begun=0.0).reader(index, READERS) for index in range(READERS)]
    readers[0].poll(10)
    assert [reader.backlog() for reader in readers] == [990, 1000]


@pytest.mark.parametrize("hot", [0.0, 0.2, 0.7])
def test_the_hot_word_has_its_share(hot):
    words = [word for number in range(2000) for word in words_of(number, hot)]
    assert words.count(0) / len(words) == pytest.approx(hot, abs=0.01)


@pytest.mark.parametrize(("change", "missing"), [(lambda keys: keys, 0), (lambda keys: keys[3:], 3), (lambda keys: [*keys, keys[0]], 1)])
def test_results_that_are_missing_and_results_that_came_twice_count_as_lost(change, missing):
    source = StepsSource([(1.0, 50.0)], begun=0.0)
    words = change([word for number in range(source.total) for word in words_of(number)])
    trace, sink = np.zeros(len(words), TRACE), TraceSink()
    trace["key"] = words
    sink.deliver(trace.tobytes())
    assert len(words) + missing >= 50 * WORDS
    assert lost(sink, source) == missing


def lived(steps, results=0):
    phases = (Phase(0.0, 10.0, 60.0, optimum(60.0)),)
    return Lived(Course(phases, ((0.0, optimum(60.0)), (5.0, optimum(60.0))), steps, lost=results), [], (), 0.0)


def test_targets_are_those_of_ds2_but_no_policy_may_lose_a_result():
    found = {verdict.claim: verdict.met for verdict in verdicts({"ds2": lived((3.0,)), "threshold": lived((1.0, 2.0, 3.0), 1)})}
    assert found == {
        "Ray: DS2's most steps after a change of demand": True,
        "Ray: DS2's slowest reaction, policy intervals": True,
        "Ray: DS2's most workers off the optimum at the end of a phase": True,
        "Ray: results lost or repeated, all policies": False,
    }
