"""Aggregates of columns whose type becomes known late, or differs between workers: after a combiner or not, moved or not."""

from __future__ import annotations

from itertools import count

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenflow as ef
from evenflow.engine.errors import RecordError
from evenflow.engine.keys.encoding import key_hashes
from evenflow.engine.operators.aggregation.aggregate_running import AggregateRunning
from evenflow.engine.operators.aggregation.aggregate_windows import AggregateWindows
from evenflow.engine.operators.aggregation.combine import Combine
from evenflow.engine.protocol.elements import MAX_TIME
from evenflow.engine.protocol.routing import Move
from evenflow.engine.task.exchange import Buffer
from evenflow.engine.time.windows import Windows

FUNCTIONS = {
    "n": ef.count(), "known": ef.count("x"), "total": ef.sum("x"), "mean": ef.mean("x"), "low": ef.min("x"), "high": ef.max("x"),
    "first": ef.first("x"), "last": ef.last("x"), "distinct": ef.approx_distinct("x"), "middle": ef.approx_quantile("x", 0.5),
}  # fmt: skip
NOTHING = {"known": 0, "distinct": 0, **dict.fromkeys(("total", "mean", "low", "high", "first", "last", "middle"))}
OWN_TYPES = {"n": pa.int64(), "known": pa.int64(), "distinct": pa.int64(), "mean": pa.float64(), "middle": pa.float64()}
EVERYTHING = Move(0, 1, tuple(range(16)))

NULLS, INTEGERS, FLOATS = pa.null(), pa.int64(), pa.float64()


@pytest.fixture(scope="module", params=["memory", "lmdb"])
def drive(request, drive_in):
    return drive_in(request.param)


def windows(functions=FUNCTIONS):
    return AggregateWindows(("k",), functions, Windows(1000, 1000))


def finals(functions=FUNCTIONS):
    return AggregateRunning(("k",), functions, updates=False)


def updates(functions=FUNCTIONS):
    return AggregateRunning(("k",), functions, updates=True)


every_operator = pytest.mark.parametrize("make", [windows, finals, updates])


class Workers:
    """Combiners, or workers that keep state: each gets batches of one type."""

    def __init__(self, drive, make, *, combined):
        self.drive, self.make, self.combined, self.clock = drive, make, combined, count()
        self.step = self.worker()
        self.combiners = {}

    def worker(self):
        return self.drive(self.make().combined()[1] if self.combined else self.make())

    def give(self, kind, values, key="a", sender=0):
        """Process a batch of one key; its values are of `kind`."""
        rows = {"k": [key] * len(values), "x": pa.array(values, kind)}
        step = self.step
        if self.combined:
            if sender not in self.combiners:
                self.combiners[sender] = self.drive(self.make().combined()[0])
            step = self.combiners[sender].into(self.step)
        step.process(rows, [next(self.clock) for _ in values])

    def move(self, step, chunk=100):
        """Move all state to another worker, `step`, which continues."""
        departing = self.step.operator.state.depart(EVERYTHING)
        while (state := departing.next_chunk(chunk)) is not None:
            step.operator.state.install(state)
        self.step = step

    def results(self):
        """Return the last row of each key."""
        self.step.advance(MAX_TIME)
        self.step.finish()
        return {row["k"]: {name: row[name] for name in FUNCTIONS} for row in self.step.rows["out"]}


def expected(values):
    known = [value for value in values if value is not None]
    if not known:
        return {"n": len(values), **NOTHING}
    return {
        "n": len(values), "known": len(known), "total": sum(known), "mean": sum(known) / len(known), "low": min(known), "high": max(known),
        "first": known[0], "last": known[-1], "distinct": len(set(known)),
        "middle": pytest.approx(sorted(known)[(len(known) - 1) // 2], rel=0.011),
    }  # fmt: skip


@every_operator
@pytest.mark.parametrize("combined", [False, True])
def test_column_of_nulls_gets_its_type_when_it_comes(drive, make, combined):
    workers = Workers(drive, make, combined=combined)
    workers.give(NULLS, [None, None])
    workers.give(NULLS, [None], key="b")
    workers.give(INTEGERS, [3, None, 5])
    workers.give(NULLS, [None])
    assert workers.results() == {"a": expected([None, None, 3, None, 5, None]), "b": expected([None])}


@every_operator
def test_one_combiner_has_seen_only_nulls_another_integers_and_another_floats(drive, make):
    workers = Workers(drive, make, combined=True)
    for sender, (kind, values) in enumerate([(NULLS, [None]), (INTEGERS, [7, -2]), (FLOATS, [0.5]), (NULLS, [None]), (INTEGERS, [1])]):
        workers.give(kind, values, sender=sender % 3 if sender < 3 else sender - 3)
    assert workers.results() == {"a": expected([None, 7, -2, 0.5, None, 1])}
    assert workers.step.schemas[-1].field("total").type == workers.step.schemas[-1].field("low").type == pa.float64()


@every_operator
@pytest.mark.parametrize("combined", [False, True])
def test_strings_may_come_late_too(drive, make, combined):
    functions = {"low": ef.min("x"), "last": ef.last("x"), "distinct": ef.approx_distinct("x")}
    first, second = make(functions).combined() if combined else (None, make(functions))
    step = drive(second)
    for time, column in enumerate([pa.nulls(1), pa.array(["b"]), pa.array(["a"], pa.large_string()), pa.nulls(1)]):
        (step if first is None else drive(first).into(step)).process({"k": ["k"], "x": column}, [time])
    step.advance(MAX_TIME)
    step.finish()
    row = step.rows["out"][-1]
    assert (row["low"], row["last"], row["distinct"]) == ("a", "a", 2)


@every_operator
@pytest.mark.parametrize("combined", [False, True])
def test_stream_that_ends_without_a_type_has_nulls_of_the_aggregates_own_types(drive, make, combined):
    workers = Workers(drive, make, combined=combined)
    workers.give(NULLS, [None, None])
    assert workers.results() == {"a": expected([None, None])}
    schema = workers.step.schemas[-1]
    assert {name: schema.field(name).type for name in FUNCTIONS} == {name: OWN_TYPES.get(name, pa.null()) for name in FUNCTIONS}


@pytest.mark.few(48)
@every_operator
@pytest.mark.parametrize("combined", [False, True])
@pytest.mark.parametrize("chunk", [1, 100])
@pytest.mark.parametrize("here", [NULLS, INTEGERS, FLOATS], ids=str)
@pytest.mark.parametrize("there", [None, NULLS, INTEGERS, FLOATS], ids=str)
def test_state_moves_between_workers_that_have_seen_other_types(drive, make, combined, chunk, here, there):
    workers = Workers(drive, make, combined=combined)
    old, new = workers.step, workers.worker()
    values = {NULLS: [None], INTEGERS: [3, None], FLOATS: [0.25, 4.0]}
    if there is not None:
        workers.step = new
        workers.give(there, values[there], key="there", sender=1)
        workers.step = old
    for key in "abc":
        workers.give(here, values[here], key=key)
    workers.move(new, chunk)
    workers.give(INTEGERS, [1], key="a", sender=2)
    rows = workers.results()
    assert rows["a"] == expected([*values[here], 1])
    if make is not updates:  # who emits updates does so for keys that change
        assert rows["b"] == rows["c"] == expected(values[here])
        assert there is None or rows["there"] == expected(values[there])


@every_operator
@pytest.mark.parametrize("combined", [False, True])
def test_state_that_is_still_leaving_when_a_type_comes_leaves_whole(drive, make, combined):
    workers = Workers(drive, make, combined=combined)
    for key in "ab":
        workers.give(NULLS, [None], key=key)
        workers.give(INTEGERS, [2], key=key)
    departing = workers.step.operator.state.depart(Move(0, 1, keys=tuple(key_hashes([pa.array(["a"])], "step").tolist())))
    workers.give(FLOATS, [0.5], key="b")
    new = workers.worker()
    while (state := departing.next_chunk(1)) is not None:
        new.operator.state.install(state)
    assert workers.results()["b"] == expected([None, 2, 0.5])
    workers.step = new
    workers.give(FLOATS, [1.5], key="a")
    assert workers.results()["a"] == expected([None, 2, 1.5])


@every_operator
def test_types_that_do_not_go_together_are_refused_by_name_also_from_two_workers(drive, make):
    pairs = [make({"high": ef.max("x")}).combined() for _ in range(2)]
    one, two, step = drive(pairs[0][0]), drive(pairs[1][0]), drive(pairs[0][1])
    one.into(step).process({"k": ["a"], "x": [1]}, [0])
    with pytest.raises(RecordError, match="operator `step`: column `x` was int64 and is now string, and no type holds both"):
        two.into(step).process({"k": ["a"], "x": ["one"]}, [0])


def test_partial_aggregates_of_other_types_are_not_put_into_one_batch(drive):
    buffer, sent, combiner = Buffer(0), [], drive(Combine(("k",), FUNCTIONS, None))
    combiner._emit = lambda batch, port="out": buffer.add(batch, 0.0)
    for column in (pa.nulls(2), pa.nulls(2), pa.array([1, 1]), pa.array([2, 2]), pa.nulls(2), pa.array([0.5, 0.5])):
        combiner.process({"k": ["a", "a"], "x": column})
    buffer.flush(sent)
    assert [item.element.num_rows for item in sent] == [2, 3, 1]


def test_a_binding_that_holds_all_types_stays(drive):
    step = drive(finals())
    for column in (pa.nulls(1), pa.array([0.5])):
        step.process({"k": ["a"], "x": column}, [0])
    binding, table = step.operator.aggregator.binding, step.operator.state
    for column in (pa.nulls(1), pa.array([1]), pa.array([1.5]), pa.array([1], pa.int8())):
        step.process({"k": ["a"], "x": column}, [0])
    assert step.operator.aggregator.binding is binding
    assert step.operator.state is table


batches = st.lists(
    st.tuples(
        st.sampled_from([NULLS, INTEGERS, FLOATS]), st.lists(st.none() | st.integers(-50, 50), min_size=1, max_size=4),
        st.sampled_from("ab"), st.integers(0, 2), st.booleans(),
    ),
    min_size=1, max_size=8,
)  # fmt: skip


@pytest.mark.slow
@every_operator
@given(batches=batches, combined=st.booleans())
@settings(max_examples=40, deadline=None)
def test_results_are_those_of_all_values_whatever_the_types_and_the_moves(drive, make, batches, combined):
    workers, values = Workers(drive, make, combined=combined), {}
    for kind, numbers, key, sender, move in batches:
        given_ = [None if kind == NULLS or number is None else number / 4 if kind == FLOATS else number for number in numbers]
        workers.give(kind, given_, key=key, sender=sender)
        values.setdefault(key, []).extend(given_)
        if move and make is not updates:
            workers.move(workers.worker(), chunk=1)
    assert workers.results() == {key: expected(known) for key, known in values.items()}
