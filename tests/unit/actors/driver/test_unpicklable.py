"""Unpicklable parts of a plan are named: operator, function, variable."""

from __future__ import annotations

import functools
import threading

import pytest

import evenflow as ef
from evenflow.actors.driver.unpicklable import refusal
from evenflow.engine.errors import RecordError

LOCK = threading.Lock()


class Connected:
    def __init__(self):
        self.connection = {"lock": threading.Lock()}

    def look_up(self, row):
        return row

    def __call__(self, row):
        return row


class Locked(ef.KeyedFunction):
    def __init__(self):
        self.held = threading.Lock()

    def on_row(self, key, row, context):
        return []


class Sums(ef.Aggregate):
    def __init__(self):
        self.log = open  # picklable parts are not named
        self.held = threading.Lock()

    def create(self):
        return 0

    def add(self, accumulator, row):
        return accumulator

    def merge(self, a, b):
        return a

    def finish(self, accumulator):
        return accumulator


def using_a_global(row):
    with LOCK:
        return row


using_a_global.__module__ = "__main__"  # a function of a module is sent by its name, one of a script with all it uses


def closed_over():
    lock = threading.Lock()

    def look_up(row):
        with lock:
            return row

    return look_up


def by_default(row, lock=LOCK):
    return row


by_default.__module__ = "__main__"


def taking(row, lock):
    return row


def mapped(function):
    return lambda stream: stream.map(function).named("look")


def nested():
    inner = closed_over()
    return lambda row: inner(row)


UNSENT = {
    "closure": (mapped(closed_over()), "the variable `lock` of the function `closed_over.<locals>.look_up` is a "),
    "closure within a closure": (mapped(nested()), "the variable `lock` of the function `closed_over.<locals>.look_up` is a "),
    "global": (mapped(using_a_global), "the global `LOCK` of the function `using_a_global` is a "),
    "default": (mapped(by_default), "the default of `lock` of the function `by_default` is a "),
    "method": (mapped(Connected().look_up), "the object of the method `Connected.look_up`, in it the attribute `connection` of Connected"),
    "object": (mapped(Connected()), "the attribute `connection` of Connected, in it the item 'lock' is a "),
    "partial": (mapped(functools.partial(taking, lock=LOCK)), "argument `lock` of a partial is a "),
    "keyed function": (lambda s: s.key_by("item").process(Locked()).named("look"), "the attribute `held` of Locked is a "),
    "aggregate": (lambda s: s.key_by("item").aggregate(n=Sums()).named("look"), "the attribute `held` of Sums is a "),
}


def plan_of(build, sink=None):
    flow = ef.Dataflow("wrong")
    build(flow.read(ef.from_items([1]))).write(sink or ef.to_list([]))
    return flow.plan()


@pytest.mark.parametrize("name", UNSENT)
def test_operator_function_and_variable_are_named(name):
    build, variable = UNSENT[name]
    message = str(refusal(plan_of(build)))
    assert "operator `look" in message
    assert variable in message
    assert "lock, which can't be pickled (TypeError: cannot pickle '_thread.lock' object)" in message
    assert "create it where it is used: inside the function" in message
    assert "\n" not in message


def test_callback_of_a_sink_is_looked_into():
    message = str(refusal(plan_of(lambda stream: stream, ef.to_callback(closed_over(), name="alert"))))
    assert message.startswith("operator `alert` can't be sent to workers: the variable `lock` of the function `closed_over")


def test_plan_that_can_be_sent_is_not_refused():
    assert refusal(plan_of(lambda stream: stream.map(lambda row: row))) is None


def test_error_with_a_users_objects_arrives_as_text():
    plain = {"n": 1, "at": [None, (1.5, b"x")]}
    error = RecordError("map", "bad", key=LOCK, record=plain)
    again = error.__reduce__()[0](*error.__reduce__()[1])
    assert (again.record, type(again.key)) == (plain, str)
    assert again.key == repr(LOCK)
