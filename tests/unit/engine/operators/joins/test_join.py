"""Joins driven by hand: when rows are emitted and with what time, late rows, forgotten rows, and keys whose hashes are equal."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

import evenflow as ef
from evenflow.engine.batch import Batch
from evenflow.engine.joins import session_rows
from evenflow.engine.joins.matching import PIECE
from evenflow.engine.joins.row_log import SMALLEST
from evenflow.engine.joins.sides import LEFT, RIGHT, side_of
from evenflow.engine.operators import two_inputs
from evenflow.engine.operators.joins.join import Join
from evenflow.engine.operators.joins.join_asof import JoinAsof
from evenflow.engine.operators.joins.window_join import WindowJoin


class Sides:
    """A join driven by hand: rows with key columns `k`, and a column of each side."""

    def __init__(self, drive, operator):
        self.driven = drive(operator)
        for port in ("late_left", "late_right"):
            self.driven.rows[port], self.driven.times[port] = [], []

    def left(self, *rows, names=("k", "l", "t")):
        return self._side(LEFT, rows, names)

    def right(self, *rows, names=("k", "r", "t")):
        return self._side(RIGHT, rows, names)

    def advance(self, watermark):
        return self._results(lambda: self.driven.advance(watermark))

    def late(self, side):
        return self.driven.rows[f"late_{side}"]

    def _side(self, side, rows, names):
        columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
        times = np.array(columns.pop("t"), np.int64)
        return self._results(lambda: self.driven.process_batch(side.tag(Batch(pa.record_batch(columns), times), ("k",))))

    def _results(self, step):
        before = len(self.driven.times["out"])
        rows = step()
        return [(*row.values(), time) for row, time in zip(rows, self.driven.times["out"][before:], strict=True)]


@pytest.fixture
def bounded(drive):
    def make(how="inner", lower=0, upper=10):
        return Sides(drive, Join(("k",), ("k",), ef.between(lower / 1e6, upper / 1e6), how, "_right"))

    return make


def test_pair_is_emitted_when_its_second_row_arrives_with_the_later_time(bounded):
    join = bounded()
    assert join.left(("a", 1, 5)) == []
    assert join.right(("a", 2, 15), ("a", 3, 16), ("b", 4, 6)) == [("a", 1, 2, 15)]
    assert join.left(("a", 7, 8)) == [("a", 7, 2, 15), ("a", 7, 3, 16)]


def test_row_without_a_partner_is_emitted_once_none_can_arrive_with_that_time(bounded):
    join = bounded("full", lower=-4)
    join.left(("a", 1, 5))
    join.right(("b", 2, 6))
    assert join.advance(10) == []
    assert join.advance(11) == [("b", None, 2, 10)]
    assert join.advance(15) == []
    assert join.advance(16) == [("a", 1, None, 15)]


@pytest.mark.parametrize(("how", "kept"), [("semi", [("a", 1, 15)]), ("anti", [("b", 2, 15)])])
def test_semi_and_anti_decide_each_row_of_left_once(bounded, how, kept):
    join = bounded(how)
    join.left(("a", 1, 5), ("b", 2, 5))
    assert join.right(("a", 3, 7), ("a", 4, 8)) == []
    assert join.advance(16) == kept
    assert join.advance(100) == []


def test_late_rows_go_to_the_output_of_their_side(bounded):
    join = bounded("left")
    join.left(("a", 1, 5))
    join.advance(7)
    assert join.right(("a", 2, 6), ("a", 3, 7)) == [("a", 1, 3, 7)]
    join.left(("a", 4, 6))
    assert join.late("right") == [{"k": "a", "r": 2}]
    assert join.late("left") == [{"k": "a", "l": 4}]
    assert join.driven.operator.late_records == 2


@pytest.mark.slow
def test_rows_are_forgotten_when_nothing_can_join_them(bounded):
    join = bounded()
    for time in range(0, 30_000, 10):
        join.left(*((f"k{time + i}", i, time) for i in range(10)))
        join.advance(time)
    assert sum(map(len, join.driven.operator.state.logs.values())) <= 2 * SMALLEST
    join.advance(2**62)
    assert join.driven.operator.state.nbytes == 0


def test_keys_with_equal_hashes_are_distinguished(bounded, monkeypatch):
    monkeypatch.setattr(two_inputs, "key_hashes", lambda columns, operator: np.zeros(len(columns[0]), np.uint64))
    join = bounded("full")
    join.left(("a", 1, 5), ("b", 2, 5), ("c", 3, 5))
    assert sorted(join.right(("b", 4, 6), ("a", 5, 6))) == [("a", 1, 5, 6), ("b", 2, 4, 6)]
    assert join.advance(100) == [("c", 3, None, 15)]


def test_hot_key_with_more_pairs_than_a_piece_gives_all_of_them(bounded):
    join = bounded()
    count = int(PIECE**0.5) + 50
    join.left(*(("a", i, 5) for i in range(count)))
    pairs = join.right(*(("a", i, 6) for i in range(count)))
    assert len(set(pairs)) == len(pairs) == count**2


def test_upper_bound_may_be_a_column_of_left(drive):
    join = Sides(drive, Join(("k",), ("k",), ef.between(0, "until"), "left", "_right"))
    until = np.array([8, 20], "datetime64[us]")
    batch = Batch(pa.record_batch({"k": ["a", "a"], "until": pa.array(until)}), np.array([5, 5], np.int64))
    join.driven.process_batch(LEFT.tag(batch, ("k",)))
    assert [row[2] for row in join.right(("a", 1, 9))] == [1]
    assert [(row[0], row[-1]) for row in join.advance(10)] == [("a", 8)]
    assert [row[2] for row in join.right(("a", 2, 20), ("a", 3, 21))] == [2]


def test_window_join_gives_everything_at_the_windows_end(drive):
    join = Sides(drive, WindowJoin(("k",), ("k",), ef.sliding(20e-6, every=10e-6), "left", "_right"))
    join.left(("a", 1, 5), ("b", 2, 12))
    assert join.right(("a", 3, 12)) == []
    first, second = join.advance(10), join.advance(20)
    assert [(row[:3], row[-1]) for row in first] == [(("a", 1, None), 9)]
    assert sorted((row[:3], row[-1]) for row in second) == [(("a", 1, 3), 19), (("b", 2, None), 19)]
    join.left(("a", 4, 9))
    assert join.late("left") == [{"k": "a", "l": 4}], "the last window of 9 has ended"
    join.left(("a", 5, 10))
    assert sorted(row[:3] for row in join.advance(30)) == [("a", 5, 3), ("b", 2, None)]


@pytest.fixture
def sessions(drive):
    return lambda how="full", gap=10: Sides(drive, WindowJoin(("k",), ("k",), ef.session(gap / 1e6), how, "_right"))


def test_session_join_gives_a_session_once_the_watermark_is_past_its_end(sessions):
    join = sessions()
    join.left(("a", 1, 5), ("a", 2, 26), ("b", 3, 5))
    join.right(("a", 4, 15), ("a", 5, 37))
    assert [(row[:3], row[-1]) for row in join.advance(25)] == [(("b", 3, None), 15)]
    assert [(row[:3], row[-1]) for row in join.advance(26)] == [(("a", 1, 4), 25)]
    assert sorted(row[:2] for row in join.advance(47)) == [("a", 2)]
    assert [(row[:3], row[-1]) for row in join.advance(48)] == [(("a", None, 5), 47)]


def test_row_of_a_session_join_is_late_behind_the_watermark(sessions):
    join = sessions("inner")
    join.left(("a", 1, 20))
    join.advance(18)
    join.right(("a", 2, 17), ("a", 3, 18))
    assert join.late("right") == [{"k": "a", "r": 2}]
    assert [row[:3] for row in join.advance(100)] == [("a", 1, 3)]


def test_sessions_of_keys_with_equal_hashes_are_distinguished(sessions, monkeypatch):
    monkeypatch.setattr(two_inputs, "key_hashes", lambda columns, operator: np.zeros(len(columns[0]), np.uint64))
    join = sessions()
    join.left(("a", 1, 5), ("b", 2, 14), ("a", 3, 23))
    join.right(("b", 4, 15), ("a", 5, 24))
    assert sorted((row[:3], row[-1]) for row in join.advance(100)) == [(("a", 1, None), 15), (("a", 3, 5), 34), (("b", 2, 4), 25)]


def test_rows_of_ended_sessions_are_removed_and_those_of_long_ones_stay(sessions, monkeypatch):
    monkeypatch.setattr(session_rows, "FEW", 10)
    join = sessions("inner")
    for time in range(0, 2_000, 5):
        join.left(("long", 0, time), *((f"short {time} {i}", 1, time) for i in range(5)))
        assert join.advance(time) == []
        kept = sum(map(len, join.driven.operator.state.logs.values()))
        assert kept <= 2 * (time // 5 + 20) + 10, "more than half of the rows are of sessions that have ended"
    join.right(("long", 7, 1_995))
    assert len(join.advance(3_000)) == 400
    assert not any(map(len, join.driven.operator.state.logs.values()))


def test_asof_join_takes_the_newest_row_that_is_not_later(drive):
    join = Sides(drive, JoinAsof(("k",), ("k",), "left", 10, "_right"))
    join.right(("a", 1, 2), ("a", 2, 5), ("a", 4, 5), ("a", 3, 9))
    assert join.left(("a", 7, 6), ("a", 8, 20), ("b", 9, 6)) == []
    assert sorted(join.advance(7)) == [("a", 7, 4, 6), ("b", 9, None, 6)]
    assert join.advance(21) == [("a", 8, None, 20)], "the newest is 11 older"


def test_asof_join_forgets_rows_that_a_newer_one_replaces(drive):
    join = Sides(drive, JoinAsof(("k",), ("k",), "inner", None, "_right"))
    random = Random(1)
    for time in range(0, 20_000, 100):
        join.right(*((random.choice("abc"), time + i, time + i) for i in range(100)))
        join.advance(time)
    assert len(join.driven.operator.state.logs[RIGHT]) <= 2 * SMALLEST
    join.left(("a", 1, 30_000))
    ((_, _, newest, _),) = join.advance(30_001)
    assert newest > 19_900


def test_snapshot_has_the_columns_that_were_known_when_it_began(bounded):
    join = bounded("left")
    join.left(("a", 1, 5))
    state = join.driven.operator.state
    assert state.changes() is None
    whole = state.snapshot()
    join.right(("a", 2, 6))
    assert {side_of(chunk.rows.schema) for chunk in whole} == {LEFT}
    delta = state.delta(state.changes())
    join.right(("a", 3, 7))
    assert {side_of(chunk.rows.schema) for chunk in delta} == {LEFT, RIGHT}
