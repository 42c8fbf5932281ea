from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenflow as ef
from evenflow.engine.aggregates.partial_aggregates import is_partial
from evenflow.engine.operators.aggregation.aggregate_running import AggregateRunning
from evenflow.engine.operators.aggregation.aggregate_sessions import AggregateSessions
from evenflow.engine.operators.aggregation.aggregate_windows import AggregateWindows
from evenflow.engine.operators.aggregation.combine import EVERY, Combine
from evenflow.engine.time.sessions import SessionWindows
from evenflow.engine.time.windows import Windows

FUNCTIONS = {"n": ef.count(), "total": ef.sum("x"), "most": ef.max("x")}
DISTINCT = {"k": [1, 2, 3], "x": [1, 2, 3], "unread": ["a", "b", "c"]}
ALIKE = {"k": [1, 1, 1], "x": [1, 2, 3], "unread": ["a", "b", "c"]}
STEPS = [
    pytest.param(AggregateRunning(("k",), FUNCTIONS, updates=True), id="updates"),
    pytest.param(AggregateRunning(("k",), FUNCTIONS, updates=False), id="at the end"),
    pytest.param(AggregateWindows(("k",), FUNCTIONS, Windows(10, 5)), id="windows"),
    pytest.param(AggregateSessions(("k",), FUNCTIONS, SessionWindows(3)), id="sessions"),
]


@pytest.fixture
def sent_by_combiner(drive):
    def sent(rows, count):
        batches, combiner = [], drive(Combine(("k",), FUNCTIONS, None))
        combiner._emit = lambda batch, port="out": batches.append(batch)
        for _ in range(count):
            combiner.process(rows, [0, 1, 2])
        return batches

    return sent


def test_batches_of_distinct_keys_pass_without_unread_columns_and_one_in_some_is_combined(sent_by_combiner):
    sent = sent_by_combiner(DISTINCT, EVERY + 1)
    assert [is_partial(batch.rows) for batch in sent] == [True] + [False] * (EVERY - 1) + [True]
    assert sent[1].rows.schema.names == ["k", "x"]
    assert sent[1].times.tolist() == [0, 1, 2]


def test_batches_of_few_keys_are_combined(sent_by_combiner):
    sent = sent_by_combiner(ALIKE, EVERY)
    assert [(is_partial(batch.rows), batch.num_rows) for batch in sent] == [(True, 1)] * EVERY


rows = st.lists(st.tuples(st.integers(0, 5), st.integers(-9, 9), st.integers(0, 8)), min_size=1, max_size=6)


@pytest.mark.few(1)
@pytest.mark.parametrize("step", STEPS)
@given(batches=st.lists(rows, max_size=12))
def test_results_are_the_same_combined_passed_or_neither(drive, step, batches):
    before, behind = step.combined()
    behind, alone = drive(behind), drive(step)
    combiner = drive(before).into(behind)
    for number, batch in enumerate(batches):
        columns = {"k": [key for key, _, _ in batch], "x": [value for _, value, _ in batch]}
        times = [4 * number + time for _, _, time in batch]
        for first in (combiner, alone):
            first.process(columns, times)
        for last in (behind, alone):
            last.advance(4 * number)
        assert _given(behind) == _given(alone)
    for last in (behind, alone):
        last.advance(1_000)
        last.finish()
    assert _given(behind) == _given(alone)


def _given(step):
    """Return all rows so far in an order of their own, and their times."""
    return sorted(map(repr, step.rows["out"])), sorted(step.times["out"])
