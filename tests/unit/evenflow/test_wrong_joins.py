"""Joins and `co_process` that can't be: each is refused, where that can be known before anything runs, and the message says what to do."""

from __future__ import annotations

import pytest

import evenflow as ef


def keyed(*keys, flow=None):
    return (flow or ef.Dataflow("wrong")).read(ef.from_items([{"k": 1}], name="items")).key_by(*keys)


class Pairs(ef.CoKeyedFunction):
    def on_left(self, key, row, context):
        yield row

    def on_right(self, key, row, context):
        yield row


class Alone(ef.KeyedFunction):
    def on_row(self, key, row, context):
        yield row


class Asks(Pairs):
    def on_right(self, row):
        yield row


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (Pairs, "co_process.*: expected an instance of a class derived from ef.CoKeyedFunction"),
        (Alone(), "expected an instance of a class derived from ef.CoKeyedFunction .it is a KeyedFunction, which has one input"),
        (Asks(), "Asks.on_right.*is called with .key, row, context."),
    ],
)
def test_co_process_without_a_function_of_two_inputs_is_refused(function, problem):
    left = keyed("k")
    with pytest.raises(ef.FlowError, match=problem):
        left.co_process(left, function)
