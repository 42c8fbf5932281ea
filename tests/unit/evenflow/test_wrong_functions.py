"""Functions that do what they must not: each ends the job, or is refused when it is given, and the message says what to do."""

from __future__ import annotations

import functools
import sys
from collections import deque
from datetime import datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest

import evenflow as ef


class Awkward(Exception):
    def __str__(self):
        raise RuntimeError("no text")


class Demanding(ef.EvenflowError):
    """Can't be unpickled: a pickle has no arguments for it."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


class Own(BaseException):
    pass


class Enriched:
    def __init__(self, row):
        self.row = row


class Waiting:
    async def __call__(self, row):
        return row


class Model:
    def __init__(self, path):
        raise FileNotFoundError(path)

    def __call__(self, row):
        return row


class Pair:
    def __call__(self, a, b):
        return a, b


class Yielding:
    def __call__(self, batch):
        yield batch


class Sums(ef.Aggregate):
    def create(self):
        return 0

    def add(self, accumulator, row):
        return accumulator + row["v"]

    def merge(self, a, b):
        return a + b

    def finish(self, accumulator):
        return accumulator


class Forgetful(Sums):
    def add(self, accumulator, row):
        accumulator += row["v"]


class Exiting(Sums):
    def add(self, accumulator, row):
        sys.exit(2)


class Streaming(Sums):
    def add(self, accumulator, row):
        yield accumulator


class Short(Sums):
    def merge(self, a):
        return a


class Deques(Sums):
    def create(self):
        return deque()

    def add(self, accumulator, row):
        return deque([*accumulator, row["v"]])


class OnRow(ef.KeyedFunction):
    """Returns what it is given."""

    def __init__(self, returned):
        self.returned = returned

    def on_row(self, key, row, context):
        return self.returned


class TwoArguments(ef.KeyedFunction):
    def on_row(self, key, row):
        yield row


class Awaited(ef.KeyedFunction):
    async def on_row(self, key, row, context):
        return []


class Timed(ef.KeyedFunction):
    def on_row(self, key, row, context):
        context.timer(datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))))


class Sets(ef.KeyedFunction):
    def __init__(self, at):
        self.at = at

    def on_row(self, key, row, context):
        context.timer(self.at)


class ShortTimer(ef.KeyedFunction):
    def on_row(self, key, row, context):
        context.timer(context.time)

    def on_timer(self, key):
        return []


def raises(error):
    def failing(row):
        raise error

    return failing


def nothing(row):
    row["v"] += 1


def endless(row):
    return endless(row)


async def awaited(row):
    return row


async def alone():
    return {}


async def lost(row):
    await awaited(row)


def yielding(row):
    yield row


def stateful(returned):
    return lambda s: s.key_by("k").stateful_map(lambda state, row: returned(row))


def columns(function):
    return lambda s: s.key_by("k").stateful_map_columns(function, state={"n": "int64"})


def aggregate(own):
    return lambda s: s.key_by("k").aggregate(own=own)


def process(function):
    return lambda s: s.key_by("k").process(function)


WRONG = {
    # What ends a process ends the job, and says so.
    "map calls sys.exit": (lambda s: s.map(lambda row: sys.exit(3)), "`map`", "raised SystemExit: 3; a function can't end", "'v': 1"),
    "map is interrupted": (lambda s: s.map(raises(KeyboardInterrupt())), "`map`", "raised KeyboardInterrupt; a function can't end"),
    "map raises what is no Exception": (lambda s: s.map(raises(Own("own"))), "`map`", "raised Own: own", "'v': 1"),
    "map ends a generator": (lambda s: s.map(raises(GeneratorExit())), "`map`", "raised GeneratorExit"),
    "flat_map calls sys.exit": (lambda s: s.flat_map(lambda row: sys.exit()), "`flat_map`", "raised SystemExit"),
    "filter calls sys.exit": (lambda s: s.filter(lambda row: sys.exit()), "`filter`", "raised SystemExit"),
    "key_by calls sys.exit": (lambda s: s.key_by(lambda row: sys.exit()).aggregate(n=ef.count()), "`key_by`", "raised SystemExit"),
    "map_batches calls sys.exit": (lambda s: s.map_batches(lambda batch: sys.exit()), "`map_batches`", "raised SystemExit"),
    "stateful_map calls sys.exit": (stateful(lambda row: sys.exit()), "`stateful_map`", "raised SystemExit", "key: 'a'"),
    "stateful_map_columns calls sys.exit": (columns(lambda state, rows: sys.exit()), "`stateful_map_columns`", "raised SystemExit"),
    "an aggregate calls sys.exit": (aggregate(Exiting()), "`aggregate`", "Exiting.add raised SystemExit: 2"),
    "sys.exit is no refused record": (lambda s: s.map(lambda row: sys.exit(), on_error="skip"), "`map`", "raised SystemExit"),
    # Any error that a function raises reaches the caller that waits.
    "an error has no text": (lambda s: s.map(raises(Awkward())), "`map`", "raised Awkward: (no text: its __str__ raises", "RuntimeError"),
    "an error of ours from a user's class": (lambda s: s.map(raises(Demanding(1, "code 1"))), "`map`", "raised Demanding: code 1"),
    "an error of ours": (lambda s: s.map(raises(ef.FlowError("mine"))), "`map`", "raised FlowError: mine", "'v': 1"),
    "endless recursion": (lambda s: s.map(endless), "`map`", "endless raised RecursionError"),
    "next of nothing": (lambda s: s.map(lambda row: next(iter([]))), "`map`", "raised StopIteration"),
    "a column that isn't there": (lambda s: s.map(lambda row: row["w"]), "`map`", "raised KeyError: 'w'", "'v': 1"),
    # What a function returns is what its operator needs.
    "map changes its row and returns nothing": (lambda s: s.map(nothing), "returned None", "leave records out with filter", "'k': 'a'"),
    "map returns None for one row": (
        lambda s: s.map(lambda row: row if row["v"] == 1 else None), "`map`", "returned None", "flat_map", "'k': 'b'",
    ),
    "map returns None for the first row": (lambda s: s.map(lambda row: row if row["v"] == 2 else None), "returned None", "'k': 'a'"),
    "flat_map yields None": (lambda s: s.flat_map(lambda row: [None]), "`flat_map`", "returned None in place of a row", "'k': 'a'"),
    "flat_map returns None": (lambda s: s.flat_map(lambda row: None), "`flat_map`", "got None; [] drops the record", "'v': 1"),
    "flat_map returns a row": (lambda s: s.flat_map(lambda row: row), "`flat_map`", "must return a list", "got {'k': 'a'"),
    "flat_map returns text": (lambda s: s.flat_map(lambda row: row["k"]), "`flat_map`", "must return a list", "got 'a'"),
    "flat_map returns a number": (lambda s: s.flat_map(lambda row: 5), "`flat_map`", "must return a list", "got 5"),
    "filter returns None": (lambda s: s.filter(lambda row: None), "`filter`", "returned None, perhaps because", "True or False", "'v': 1"),
    "filter returns text": (lambda s: s.filter(lambda row: row["k"]), "`filter`", "returned 'a' (str): return True or False"),
    "filter returns a number": (lambda s: s.filter(lambda row: row["v"] % 2), "`filter`", "returned 1 (int): return True or False"),
    "filter returns an array": (lambda s: s.filter(lambda row: np.array([True])), "`filter`", "(ndarray): return True or False"),
    "stateful_map returns its row": (stateful(lambda row: {"a": 1, "b": 2}), "(dict): return a tuple (state, row)", "key: 'a'"),
    "stateful_map returns text": (stateful(lambda row: "ab"), "`stateful_map`", "returned 'ab' (str): return a tuple (state, row)"),
    "stateful_map returns nothing": (stateful(lambda row: None), "`stateful_map`", "returned None", "return a tuple (state, row)"),
    "stateful_map returns three": (stateful(lambda row: (1, row, 2)), "`stateful_map`", "return a tuple (state, row)"),
    "map_batches returns nothing": (lambda s: s.map_batches(lambda batch: None), "`map_batches`", "expected a RecordBatch", "got NoneType"),
    "map_batches of an unknown format": (lambda s: s.map_batches(len, format="csv"), 'map_batches(format=\'csv\'): expected "arrow"'),
    "map_batches of no format": (lambda s: s.map_batches(len, format=None), "map_batches(format=None): expected"),
    "map_batches returns rows": (lambda s: s.map_batches(lambda batch: batch.to_pylist()), "expected a RecordBatch", "got list"),
    "map_batches returns a value": (lambda s: s.map_batches(lambda batch: {"a": 1}), "a dict from column names to columns"),
    "map_batches returns uneven columns": (
        lambda s: s.map_batches(lambda batch: {"a": [1], "b": [1, 2]}), "`map_batches`", "different lengths: {'a': 1, 'b': 2}",
    ),
    "map_batches returns a name twice": (
        lambda s: s.map_batches(lambda batch: pa.record_batch([[1], [2]], names=["a", "a"])), "`map_batches`", "two of its columns", "a, a",
    ),
    "map_batches returns no columns": (lambda s: s.map_batches(lambda batch: {}), "`map_batches`", "no columns", "batch.slice(0, 0)"),
    "key_by returns a list": (lambda s: s.key_by(lambda row: [1]).aggregate(n=ef.count()), "`key_by`", "a list can't be a key", "'v': 1"),
    "key_by returns an object": (lambda s: s.key_by(lambda row: object()).aggregate(n=ef.count()), "`key_by`", "return keys of one type"),
    "key_by returns keys of two types": (
        lambda s: s.key_by(lambda row: 1 if row["v"] == 1 else "x").aggregate(n=ef.count()), "`key_by`", "is int64", "'x' (str)", "'v': 2",
    ),
    "process returns a row": (process(OnRow({"a": 1})), "`process`", "OnRow.on_row returned {'a': 1}: yield rows", "key: 'a'"),
    "process returns a number": (process(OnRow(5)), "`process`", "OnRow.on_row returned 5: yield rows", "'v': 1"),
    "process returns a list of None": (process(OnRow([None])), "`process`", "returned None in place of a row", "key: 'a'"),
    "stateful_map_columns returns the rows": (columns(lambda state, rows: rows), "return a tuple (state, columns)"),
    "stateful_map_columns returns another state": (
        columns(lambda state, rows: ({"m": state["n"]}, None)), "`stateful_map_columns`", "a state of m: return a dict of the arrays n",
    ),
    "stateful_map_columns returns too much state": (
        columns(lambda state, rows: ({"n": np.zeros(7)}, None)), "`stateful_map_columns`", "`n` of shape (7,) for 2 keys",
    ),
    "stateful_map_columns returns too many rows": (
        columns(lambda state, rows: (state, {"x": np.zeros(7)})), "`stateful_map_columns`", "7 rows for 2", "rows.where(mask)",
    ),
    "an aggregate adds and returns nothing": (aggregate(Forgetful()), "`aggregate`", "Forgetful.add returned None: return the accumulator"),
    "an aggregate is kept in a deque": (aggregate(Deques()), "`aggregate`", "the accumulator can't be saved: `accumulator` is a deque"),
    # What can't be called as it will be is refused when it is given.
    "an async function": (lambda s: s.map(awaited), "map(awaited)", "async function, which is not awaited", "map_async"),
    "an async partial": (lambda s: s.map(functools.partial(awaited)), "map(", "async function"),
    "an object with an async call": (lambda s: s.map(Waiting()), "map(Waiting)", "async function"),
    "a plain function for map_async": (lambda s: s.map_async(nothing), "map_async(nothing): expected an async function", "map takes a"),
    "a plain object for map_async": (lambda s: s.map_async(5), "map_async(5): expected an async function of (row)"),
    "an async function of none": (lambda s: s.map_async(alone), "map_async(alone)", "it takes (), but is called with (row)"),
    "map_async of none at a time": (lambda s: s.map_async(awaited, concurrency=0), "map_async(concurrency=0): expected a whole number"),
    "map_async without patience": (lambda s: s.map_async(awaited, timeout=0), "map_async(timeout=0): must be longer than zero"),
    "map_async of half a retry": (lambda s: s.map_async(awaited, retries=0.5), "map_async(retries=0.5): expected a whole number"),
    "map_async of fewer retries than none": (lambda s: s.map_async(awaited, retries=-1), "map_async(retries=-1): expected a whole number"),
    "map_async of no backoff": (lambda s: s.map_async(awaited, retries=1, backoff=None), "map_async(backoff=...)"),
    "map_async of no duration": (lambda s: s.map_async(awaited, timeout="soon"), "map_async(timeout=...) 'soon' is not a duration"),
    "map_async returns None": (lambda s: s.map_async(lost), "`map_async`", "returned None in place of a row", "'v': 1"),
    "a class whose objects can't be called": (
        lambda s: s.map(Enriched), "map(Enriched)", "objects can't be called: give it a method __call__(self, row), or give a function",
    ),
    "a class whose constructor wants more": (
        lambda s: s.map(Model), "map(Model)", "it takes (path), but is called with ()", "give its arguments with functools.partial(Model,",
    ),
    "a class whose call wants more": (lambda s: s.filter(Pair), "filter(Pair): __call__", "but is called with (self, row)"),
    "a class whose objects are awaited": (lambda s: s.flat_map(Waiting), "flat_map(Waiting)", "async function", "map_async"),
    "a class whose objects yield": (lambda s: s.map_batches(Yielding), "map_batches(Yielding)", "a generator function: return a value"),
    "a class whose constructor raises": (
        lambda s: s.map(functools.partial(Model, "here")), "operator `map`: the constructor of Model raised FileNotFoundError: here",
    ),
    "a class for stateful_map": (
        lambda s: s.key_by("k").stateful_map(Pair), "stateful_map(Pair)", "a class, so each call would make an object", "or an instance",
    ),
    "a class that can't be called for key_by": (lambda s: s.key_by(Enriched), "key_by(Enriched)", "objects can't be called"),
    "a generator function": (lambda s: s.map(yielding), "map(yielding)", "a generator function", "flat_map takes"),
    "a generator function in filter": (lambda s: s.filter(yielding), "filter(yielding)", "a generator function: return a value"),
    "a function of too many": (lambda s: s.map(lambda state, row: row), "map(", "it takes (state, row), but is called with (row)", "'row'"),
    "a stateful function of too few": (
        lambda s: s.key_by("k").stateful_map(lambda row: (1, row)), "stateful_map(", "it takes (row), but is called with (state, row)",
    ),
    "an expression as text": (lambda s: s.filter("v > 1"), "filter('v > 1')", "expected a function of (row)"),
    "no function": (lambda s: s.map({"v": 1}), "map({'v': 1})", "expected a function of (row)"),
    "a KeyedFunction's class": (process(TwoArguments), "process(", "expected an instance of a class derived from ef.KeyedFunction"),
    "on_row of two arguments": (process(TwoArguments()), "TwoArguments.on_row", "but is called with (key, row, context)"),
    "an async on_row": (process(Awaited()), "Awaited.on_row", "async function"),
    "on_timer of one argument": (process(ShortTimer()), "ShortTimer.on_timer", "is called with (key, time, context)"),
    "an aggregate's class": (aggregate(Sums), "aggregate(own=", "expected an aggregate, for example ef.sum"),
    "an aggregate that isn't made": (aggregate(ef.count), "aggregate(own=", "expected an aggregate"),
    "an aggregate that yields": (aggregate(Streaming()), "Streaming.add", "a generator function"),
    "an aggregate that merges one": (aggregate(Short()), "Short.merge", "it takes (a), but is called with (a, b)"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_function_is_named_with_its_operator_and_what_to_do(ended, name):
    build, *said = WRONG[name]
    message = str(ended(build))
    for part in said:
        assert part in message
    assert "Traceback" not in message


@pytest.mark.parametrize(
    ("function", "said"),
    [
        pytest.param("text", "to_callback('text'): expected a function of (row)", id="no function"),
        pytest.param(awaited, "to_callback(awaited): an async function", id="async, so that it would never run"),
        pytest.param(yielding, "to_callback(yielding): a generator function", id="a generator, so that it would never run"),
        pytest.param(lambda: None, "it takes (), but is called with (row)", id="without arguments"),
    ],
)
def test_wrong_callback_is_refused_when_it_is_given(refused, function, said):
    assert said in str(refused(lambda: ef.to_callback(function)))


def test_callback_that_exits_ends_the_job_with_its_row(refused):
    flow = ef.Dataflow("wrong")
    flow.read(ef.from_items([{"v": 1}])).write(ef.to_callback(lambda row: sys.exit(1), name="alert"))
    error = refused(lambda: flow.run(runtime="local").wait("60s"))
    assert "operator `alert`" in str(error)
    assert "raised SystemExit: 1; a function can't end its process" in str(error)
    assert error.record == {"v": 1}


def test_timer_beyond_all_event_times_is_refused(ended):
    assert "must be in the years 1 to 9999 in UTC, got datetime.datetime(9999, 12, 31," in str(ended(process(Timed()), event_time="t"))


@pytest.mark.parametrize(
    ("at", "said"),
    [
        pytest.param("soon", "timer 'soon' is not a duration: write", id="a text"),
        pytest.param("3600000d", "timer('3600000d'): the timer would fire after the year 9999", id="too late"),
        pytest.param(60, 'a timer takes a datetime, or a duration from context.time on, such as "10m"; got 60', id="a number"),
    ],
)
def test_timer_without_a_time_is_refused(ended, at, said):
    assert said in str(ended(process(Sets(at)), event_time="t"))


def test_functions_that_fit_are_not_refused():
    """Built-in functions and types, wrappers, and predicates of numpy's are functions as well."""
    stream = ef.Dataflow("right").read(ef.from_items([{"v": 1}]))

    @functools.wraps(lambda row, extra: row)
    def wrapped(*arguments):
        return arguments[0]

    for function in (dict, dict.copy, str, wrapped, functools.partial(lambda extra, row: row, 1), lambda row, factor=2: row, print):
        stream.map(function)
    stream.filter(lambda row: np.bool_(True))
    stream.flat_map(yielding)
    stream.key_by(str)
