"""A test belongs to a tier by its folder and its markers, and its deadlines grow with the machine's load."""

from __future__ import annotations

import os
from pathlib import Path

import patience
import pytest
from tiers import TESTS, mark_slow, sample


class Item:
    """A collected test."""

    def __init__(self, name: str, *marks: pytest.MarkDecorator) -> None:
        self.nodeid, self.path, self.marks = name, TESTS / Path(name.partition("::")[0]), [mark.mark for mark in marks]

    def get_closest_marker(self, name):
        return next((mark for mark in self.marks if mark.name == name), None)

    def add_marker(self, mark):
        self.marks.append(mark.mark)


def slow(*items: Item) -> list[str]:
    mark_slow(items)
    return [item.nodeid for item in items if item.get_closest_marker("slow")]


def test_unit_tests_are_in_the_first_check_and_others_are_not_unless_they_are_marked():
    of_ray, of_spark, of_a_benchmark = "cluster/a.py::test", "spark/a.py::test", "unit/bench/a.py::test"
    items = [Item("unit/a.py::test"), Item("docstrings/a.py::test"), Item(of_ray), Item(of_spark), Item(of_a_benchmark)]
    assert slow(*items) == [of_ray, of_spark, of_a_benchmark]
    assert slow(*(Item(name, pytest.mark.first) for name in (of_ray, of_spark, of_a_benchmark))) == []


def test_a_test_for_the_night_is_not_in_the_first_check():
    assert slow(Item("unit/a.py::test", pytest.mark.nightly), Item("cluster/a.py::test", pytest.mark.nightly)) == [
        "unit/a.py::test",
        "cluster/a.py::test",
    ]


def test_a_few_cases_of_a_test_are_in_the_first_check_and_all_of_its_neighbour():
    cases = [Item(f"unit/a.py::test_many[{case}]", pytest.mark.few(2)) for case in range(4)]
    others = [Item(f"unit/a.py::test_others[{case}]") for case in range(4)]
    assert slow(*cases, *others) == ["unit/a.py::test_many[1]", "unit/a.py::test_many[2]"]


def test_a_few_cases_of_a_benchmark_are_in_the_first_check_if_it_is():
    marks = pytest.mark.first, pytest.mark.few(1)
    assert slow(*(Item(f"unit/bench/a.py::test[{case}]", *marks) for case in range(2))) == ["unit/bench/a.py::test[1]"]
    assert len(slow(*(Item(f"unit/bench/a.py::test[{case}]", marks[1]) for case in range(2)))) == 2


@pytest.mark.parametrize(("size", "number"), [(1, 1), (3, 5), (12, 4), (25, 6), (100, 33)])
def test_a_sample_has_as_many_as_asked_for(size, number):
    chosen = sample(size, number)
    assert len(chosen) == min(size, number)
    assert chosen <= set(range(size))


def test_a_sample_of_a_product_has_each_of_both_factors():
    cases = [(left, right) for left in range(6) for right in range(3)]
    chosen = [cases[position] for position in sample(len(cases), 6)]
    assert {left for left, _ in chosen} == set(range(6))
    assert {right for _, right in chosen} == set(range(3))


def test_a_deadline_is_at_least_what_it_is_on_a_quiet_machine(monkeypatch):
    monkeypatch.setattr(patience, "QUIET_SECONDS", 1e9)
    monkeypatch.setattr(patience, "waiting", lambda: 0.1)
    assert patience.measured() == 1.0


@pytest.mark.parametrize(("load", "running", "factor"), [(0.5, 6, 3.0), (8.0, 1, 4.0), (1000.0, 1, patience.MOST)])
def test_deadlines_grow_with_the_processes_that_wait_for_a_processor(load, running, factor, monkeypatch):
    monkeypatch.setattr(patience, "QUIET_SECONDS", 1e9)
    monkeypatch.setattr(patience, "_running", lambda: running)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    assert patience.measured() == factor


def test_deadlines_grow_with_the_time_that_the_work_takes(monkeypatch):
    monkeypatch.setattr(patience, "QUIET_SECONDS", 1e-9)
    monkeypatch.setattr(patience, "waiting", lambda: 0.1)
    assert patience.measured() == patience.MOST


def test_bounds_of_tests_grow_too(request):
    assert float(request.config.getini("faulthandler_timeout")) == pytest.approx(900 * patience.FACTOR)
    assert request.node.get_closest_marker("timeout").args == (pytest.approx(120 * patience.FACTOR),)


def test_processes_of_a_run_have_its_patience():
    assert float(os.environ[patience.VARIABLE]) == pytest.approx(patience.FACTOR, abs=0.01)
    assert patience.patience(60) == pytest.approx(60 * patience.FACTOR)
