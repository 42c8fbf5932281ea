"""`branch`: every row goes to one of two ports, by one evaluation of its predicate."""

from __future__ import annotations

import pytest

from evenflow.engine.batch import Batch
from evenflow.engine.errors import RecordError
from evenflow.engine.expressions.expression import col
from evenflow.engine.operators.rows.branch import Branch

ROWS = [{"n": 1, "v": 4}, {"n": 2, "v": None}, {"n": 3, "v": -1}]


class Collected:
    def __init__(self, drive, operator):
        self.rows = {"out": [], "false": [], "dead_letters": []}
        self.times = {"out": [], "false": [], "dead_letters": []}
        self.step = drive(operator)
        self.step._emit = self

    def __call__(self, batch: Batch, port: str = "out") -> None:
        assert batch.num_rows
        self.rows[port] += [row.get("n", row.get("record")) for row in batch.to_rows()]
        self.times[port] += batch.times.tolist()


def test_function_is_called_once_for_each_row_and_parts_them_with_their_times(drive):
    seen = []

    def small(row):
        seen.append(row["n"])
        return row["n"] != 2

    branches = Collected(drive, Branch(small))
    branches.step.process(ROWS, [10, 20, 30])
    assert seen == [1, 2, 3]
    assert (branches.rows["out"], branches.rows["false"]) == ([1, 3], [2])
    assert (branches.times["out"], branches.times["false"]) == ([10, 30], [20])


def test_row_for_which_an_expression_is_null_goes_to_the_second_branch(drive):
    branches = Collected(drive, Branch(col("v") > 0))
    branches.step.process(ROWS, [10, 20, 30])
    assert (branches.rows["out"], branches.rows["false"]) == ([1], [2, 3])


def test_refused_row_is_on_neither_branch(drive):
    branches = Collected(drive, Branch(lambda row: row["v"] > 0, "dead_letter"))
    branches.step.process(ROWS, [10, 20, 30])
    assert (branches.rows["out"], branches.rows["false"]) == ([1], [3])
    assert branches.rows["dead_letters"] == ['{"n": 2, "v": null}']


@pytest.mark.parametrize("wanted", [True, False])
def test_branch_without_rows_gets_no_batch(drive, wanted):
    branches = Collected(drive, Branch(lambda row: wanted))
    branches.step.process(ROWS, [10, 20, 30])
    assert branches.rows["out" if wanted else "false"] == [1, 2, 3]
    assert branches.rows["false" if wanted else "out"] == []


def test_predicate_that_is_neither_true_nor_false_is_refused(drive):
    with pytest.raises(RecordError, match=r"returned 1 \(int\): return True or False"):
        drive(Branch(lambda row: row["n"])).process(ROWS)
