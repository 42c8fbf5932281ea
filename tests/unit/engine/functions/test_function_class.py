"""Classes in place of functions: one object for each instance of an operator, created when it opens and closed with it."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import pyarrow as pa
import pytest

from evenflow.engine.errors import RecordError
from evenflow.engine.functions.function_class import class_of, let_go, made
from evenflow.engine.operators.rows.branch import Branch
from evenflow.engine.operators.rows.filter import Filter
from evenflow.engine.operators.rows.flat_map import FlatMap
from evenflow.engine.operators.rows.map import Map
from evenflow.engine.operators.rows.map_batches import MapBatches


class Counting:
    """Counts the rows, or batches, that one object has seen."""

    objects: ClassVar[list[Counting]] = []

    def __init__(self, first=1):
        self.count, self.closed = first - 1, 0
        self.objects.append(self)

    def close(self):
        self.closed += 1


class Numbered(Counting):
    def __call__(self, row):
        self.count += 1
        return {"n": self.count}


class EverySecond(Counting):
    def __call__(self, row):
        self.count += 1
        return self.count % 2 == 0


class Twice(Numbered):
    def __call__(self, row):
        yield super().__call__(row)
        yield super().__call__(row)


class Sized(Counting):
    def __call__(self, batch):
        self.count += 1
        return {"size": [batch.num_rows] * batch.num_rows, "batch": pa.array([self.count] * batch.num_rows)}


class Broken:
    def __init__(self):
        raise OSError("no model")

    def __call__(self, row):
        return row


class Stuck(Numbered):
    def close(self):
        raise OSError("gone")


@pytest.fixture(autouse=True)
def objects():
    Counting.objects.clear()
    return Counting.objects


@pytest.mark.parametrize(
    ("operator", "results"),
    [
        pytest.param(Map(Numbered), [[{"n": 1}, {"n": 2}], [{"n": 3}]], id="map"),
        pytest.param(Map(partial(Numbered, first=7)), [[{"n": 7}, {"n": 8}], [{"n": 9}]], id="map with arguments"),
        pytest.param(FlatMap(Twice), [[{"n": n} for n in (1, 2, 3, 4)], [{"n": 5}, {"n": 6}]], id="flat_map"),
        pytest.param(Filter(EverySecond), [[{"a": 2}], []], id="filter"),
        pytest.param(Branch(EverySecond), [[{"a": 2}], []], id="branch"),
        pytest.param(MapBatches(Sized), [[{"size": 2, "batch": 1}] * 2, [{"size": 1, "batch": 2}]], id="map_batches"),
    ],
)
def test_object_is_made_once_keeps_what_it_knows_and_is_closed_once(drive, objects, operator, results):
    assert not objects, "the plan makes none"
    step = drive(operator)
    if isinstance(operator, Branch):
        step.rows["false"], step.times["false"] = [], []
    assert [step.process([{"a": 1}, {"a": 2}]), step.process([{"a": 3}])] == results
    assert [made.closed for made in objects] == [0]
    step.operator.close()
    assert [made.closed for made in objects] == [1]


def test_each_instance_has_an_object_of_its_own(drive, objects):
    operator = Map(Numbered)
    assert drive(operator).process([{"a": 1}]) == drive(operator).process([{"a": 1}]) == [{"n": 1}]
    assert len(objects) == 2


def test_constructor_that_raises_names_the_operator_and_the_class(drive):
    with pytest.raises(RecordError, match="operator `step`: the constructor of Broken raised OSError: no model"):
        drive(Map(Broken))


def test_close_that_raises_warns_and_lets_the_others_close():
    with pytest.warns(RuntimeWarning, match=r"operator `step`: Stuck\.close raised OSError: gone"):
        let_go(Stuck, made(Stuck, "step"), "step")


@pytest.mark.parametrize("function", [dict, len, print, Numbered(), partial(int, base=2), partial(pa.scalar, 1), Counting])
def test_an_object_that_is_a_function_is_called_directly(function, objects):
    objects.clear()
    assert class_of(function) is None
    assert made(function, "step") is function
    let_go(function, function, "step")
    assert not objects
