"""Early results of windows and corrections for late records: when they are emitted, and for which keys."""

from __future__ import annotations

import numpy as np
import pytest

import evenflow as ef
from evenflow.engine.keys.unkeyed import UNKEYED
from evenflow.engine.operators.aggregation.aggregate_windows import AggregateWindows
from evenflow.engine.operators.aggregation.emission import Emission
from evenflow.engine.protocol.elements import MAX_TIME
from evenflow.engine.protocol.routing import Move
from evenflow.engine.time.windows import Windows


@pytest.fixture(scope="module", params=["memory", "lmdb", "server"])
def drive(request, drive_in):
    return drive_in(request.param)


def step_of(windows: Windows, emission: Emission) -> AggregateWindows:
    return AggregateWindows(("k",), {"n": ef.count(), "values": ef.collect("v")}, windows, emission=emission)


def given(step, rows):
    return step.process([{"k": key, "v": value} for key, _, value in rows], [time for _, time, _ in rows])


def shown(rows):
    return sorted((row["window_end"].microsecond, row["k"], row["n"]) for row in rows)


TUMBLING, SLIDING = Windows(10, 10), Windows(10, 5)


def test_updates_are_the_changed_keys_of_each_advance(drive):
    step = drive(step_of(TUMBLING, Emission(updates=True)))
    given(step, [("a", 1, 1), ("b", 2, 2), ("a", 12, 3)])
    assert shown(step.advance(3)) == [(10, "a", 1), (10, "b", 1), (20, "a", 1)]
    assert step.advance(4) == []
    given(step, [("a", 5, 4), ("a", 6, 5)])
    assert shown(step.advance(6)) == [(10, "a", 3)]
    given(step, [("b", 9, 6)])
    assert shown(step.advance(10)) == [(10, "b", 2)]
    assert step.advance(MAX_TIME) == []


def test_updates_wait_for_a_multiple_of_every_or_for_the_end_of_their_window(drive):
    step = drive(step_of(SLIDING, Emission(updates=True, every=4)))
    given(step, [("a", 1, 1)])
    assert shown(step.advance(1)) == [(5, "a", 1), (10, "a", 1)], "the first watermark passes many multiples"
    given(step, [("a", 2, 2), ("b", 6, 3)])
    assert step.advance(3) == []
    assert shown(step.advance(4)) == [(5, "a", 2), (10, "a", 2), (10, "b", 1), (15, "b", 1)]
    given(step, [("a", 4, 4), ("a", 7, 5)])
    assert shown(step.advance(5)) == [(5, "a", 3)], "the window that ends"
    assert shown(step.advance(8)) == [(10, "a", 4), (15, "a", 1)], "the others at the next multiple"
    assert step.advance(MAX_TIME) == []


def test_late_records_correct_their_windows_until_the_lateness_is_over(drive):
    step = drive(step_of(TUMBLING, Emission(lateness=5)))
    given(step, [("a", 1, 1), ("b", 2, 2)])
    assert step.advance(9) == []
    assert shown(step.advance(10)) == [(10, "a", 1), (10, "b", 1)]
    given(step, [("b", 3, 3), ("c", 11, 4)])
    (correction,) = step.advance(11)
    assert (correction["k"], correction["n"], correction["values"]) == ("b", 2, [2, 3])
    given(step, [("d", 4, 5)])
    assert shown(step.advance(15)) == [(10, "d", 1)], "what came before the window closed"
    given(step, [("b", 3, 6)])
    assert step.operator.late_records == 1
    assert [row["v"] for row in step.rows["late"]] == [6]
    assert shown(step.advance(MAX_TIME)) == [(20, "c", 1)]


def test_record_corrects_those_of_its_windows_that_are_not_closed(drive):
    step = drive(step_of(SLIDING, Emission(lateness=3)))
    given(step, [("a", 1, 1)])
    assert shown(step.advance(8)) == [(5, "a", 1)]
    given(step, [("a", 2, 2)])
    assert shown(step.advance(9)) == [], "the window that ends at 5 has closed, that at 10 has not ended"
    assert shown(step.advance(10)) == [(10, "a", 2)]
    given(step, [("a", 3, 3)])
    assert shown(step.advance(12)) == [(10, "a", 3)]


def test_updates_and_corrections_of_a_key_come_once_however_many_batches_it_is_in(drive):
    step = drive(step_of(TUMBLING, Emission(updates=True, every=1_000)))
    step.advance(0)
    for time in range(200):
        given(step, [("a", time % 10, time)])
    (row,) = step.advance(10)
    assert row["n"] == 200


@pytest.mark.parametrize("place", ["memory", "lmdb"])
def test_keys_that_left_are_not_emitted_and_those_that_came_are_emitted_again(drive_in, place):
    drive = drive_in(place)
    emission = Emission(updates=True, lateness=100)
    here, there = drive(step_of(TUMBLING, emission)), drive(step_of(TUMBLING, emission))
    given(here, [("a", 1, 1), ("b", 2, 2)])
    assert len(here.advance(12)) == 2
    given(here, [("a", 3, 3), ("b", 4, 4)])
    there.advance(12)
    transfer = here.operator.state.depart(Move(0, 1, tuple(range(16))))
    while (chunk := transfer.next_chunk(1)) is not None:
        there.operator.state.install(chunk)
    assert here.advance(13) == []
    assert shown(there.advance(13)) == [(10, "a", 2), (10, "b", 2)]
    assert there.advance(14) == []


def test_windows_without_keys_have_early_results_and_corrections(drive):
    step = drive(AggregateWindows(UNKEYED, {"n": ef.count()}, TUMBLING, emission=Emission(updates=True, lateness=9)))
    step.process({"v": [1, 2]}, [1, 2])
    (early,) = step.advance(3)
    assert list(early) == ["window_start", "window_end", "n"]
    assert step.advance(10) == []
    step.process({"v": [3]}, [4])
    assert [row["n"] for row in [early, *step.advance(12)]] == [2, 3]


def test_restored_state_is_emitted_again(drive):
    first, second = (drive(step_of(SLIDING, Emission(updates=True))) for _ in range(2))
    given(first, [("a", 1, 1), ("a", 6, 2)])
    before = shown(first.advance(2))
    for chunk in first.operator.state.snapshot():
        second.operator.state.restore(chunk, "step")
    assert shown(second.advance(2)) == before == [(5, "a", 1), (10, "a", 2), (15, "a", 1)]


def test_corrections_add_up_to_what_is_emitted_once_with_enough_delay(drive):
    random = np.random.default_rng(3)
    rows = [("abc"[random.integers(3)], int(time), i) for i, time in enumerate(np.arange(200) // 2 + random.integers(0, 20, 200))]
    once, often = drive(step_of(SLIDING, Emission())), drive(step_of(SLIDING, Emission(updates=True, every=7, lateness=40)))
    given(once, rows)
    for start in range(0, 200, 9):
        given(often, rows[start : start + 9])
        often.advance(rows[start][1] - 1)
    often.advance(MAX_TIME)
    newest = {(row["window_end"], row["k"]): row for row in often.rows["out"]}
    expected = {(row["window_end"], row["k"]): row for row in once.advance(MAX_TIME)}
    assert {key: row["n"] for key, row in newest.items()} == {key: row["n"] for key, row in expected.items()}
    assert {key: sorted(row["values"]) for key, row in newest.items()} == {key: sorted(row["values"]) for key, row in expected.items()}
    assert often.operator.late_records == 0
    assert len(often.rows["out"]) > len(expected)


@pytest.mark.parametrize(
    ("emission", "words"),
    [
        (Emission(), ""),
        (Emission(updates=True), "updates"),
        (Emission(updates=True, every=2_000_000, lateness=60_000_000), "updates every 2 s, late records for 60 s"),
    ],
)
def test_explain_says_when_results_are_emitted(emission, words):
    assert emission.describe() == words
