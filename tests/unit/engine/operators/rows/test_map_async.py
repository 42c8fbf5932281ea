"""`map_async`: coroutines that wait for one another, that fail, and that never end."""

from __future__ import annotations

import asyncio
import re
import warnings
from collections import Counter
from random import Random

import pytest

from evenflow.engine.errors import RecordError
from evenflow.engine.functions.retries import Retries
from evenflow.engine.operators.rows.map_async import MapAsync

ROWS = [{"n": n} for n in range(6)]


@pytest.fixture
def drive(drive):
    """Return a factory of driven operators that are closed when the test is over.

    Otherwise the garbage collector would close them while a loop of another test runs.
    """
    opened = []

    def driven(operator):
        opened.append(drive(operator))
        return opened[-1]

    yield driven
    for step in opened:
        step.operator.close()


class Together:
    """Ends a coroutine when `wanted` of them are under way, the newest first; notes how many were."""

    def __init__(self, wanted):
        self.wanted, self.waiting, self.most = wanted, [], 0

    async def __call__(self, row):
        mine = asyncio.get_running_loop().create_future()
        self.waiting.append(mine)
        self.most = max(self.most, len(self.waiting))
        if len(self.waiting) == self.wanted:
            for future in reversed(self.waiting):
                future.set_result(None)
            self.waiting = []
        await mine
        return row


@pytest.mark.parametrize("concurrency", [1, 2, 3, 6])
def test_the_allowed_number_of_rows_waits_at_a_time(drive, concurrency):
    together = Together(concurrency)
    step = drive(MapAsync(together, concurrency))
    assert step.process(ROWS, list(range(6))) == ROWS
    assert together.most == concurrency
    assert step.times["out"] == list(range(6))


def test_rows_leave_as_they_end_with_their_times_unless_they_are_ordered(drive):
    step = drive(MapAsync(Together(6), 6, ordered=False))
    assert step.process(ROWS, list(range(6))) == ROWS[::-1]
    assert step.times["out"] == [5, 4, 3, 2, 1, 0]


async def odd(row):
    await asyncio.sleep(0)
    if row["n"] == 4:
        await asyncio.get_running_loop().create_future()
    if row["n"] % 2 == 0:
        raise ValueError(row["n"])
    return row["n"] if row["n"] != 3 else "three"


@pytest.mark.parametrize("ordered", [True, False])
def test_refused_rows_leave_no_trace_but_their_letters(drive, ordered):
    step = drive(MapAsync(odd, 6, ordered, timeout=0.01, on_error="dead_letter"))
    assert sorted(row["item"] for row in step.process(ROWS, list(range(6)))) == [1, 5]
    letters = {letter["record"]: letter["error"] for letter in step.rows["dead_letters"]}
    assert letters == {'{"n": 0}': "ValueError", '{"n": 2}': "ValueError", '{"n": 3}': "RecordError", '{"n": 4}': "RecordError"}
    assert sorted(step.times["out"]) == [1, 5]


def test_coroutine_that_never_ends_is_named_with_its_operator_and_record(drive):
    async def endless(row):
        await asyncio.get_running_loop().create_future()

    problem = r"(?s)operator `step`: .*endless has not ended after 0.01 s: check what it waits for.*record: \{'n': 0\}"
    with pytest.raises(RecordError, match=problem):
        drive(MapAsync(endless, 2, timeout=0.01)).process(ROWS)


def test_time_out_of_the_function_itself_is_its_own_error(drive):
    async def impatient(row):
        raise TimeoutError("the server is slow")

    with pytest.raises(RecordError, match=r"impatient raised TimeoutError: the server is slow"):
        drive(MapAsync(impatient)).process(ROWS)


def test_first_error_cancels_the_others_and_shows_its_row(drive):
    cancelled = []

    async def failing(row):
        if row["n"] == 2:
            await asyncio.sleep(0)
            raise KeyError("two")
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            cancelled.append(row["n"])
            raise

    with pytest.raises(RecordError, match=r"(?s)raised KeyError: 'two'.*record: \{'n': 2\}"):
        drive(MapAsync(failing, 4)).process(ROWS)
    assert sorted(cancelled) == [0, 1, 3]


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()])
def test_an_exit_in_a_coroutine_ends_the_job_and_shows_the_row(drive, error):
    async def ending(row):
        raise error

    with pytest.raises(RecordError, match=rf"(?s)raised {type(error).__name__}.*record: \{{'n': 0\}}"):
        drive(MapAsync(ending, on_error="skip")).process(ROWS)


def failing_at_first(failures):
    """Return a coroutine that fails so many times for a row, in turn by an error and by taking too long."""
    calls = Counter()

    async def call(row):
        calls[row["n"]] += 1
        if calls[row["n"]] > failures(row["n"]):
            return row | {"calls": calls[row["n"]]}
        if calls[row["n"]] % 2:
            raise ConnectionError(f"{row['n']} is refused")
        return await asyncio.get_running_loop().create_future()

    return call


@pytest.mark.parametrize("ordered", [True, False])
def test_a_call_that_fails_is_repeated(drive, ordered):
    step = drive(MapAsync(failing_at_first(lambda n: n % 4), 3, ordered, timeout=0.01, retries=Retries(3, backoff=0.001)))
    rows = step.process(ROWS, list(range(6)))
    assert sorted(row["n"] for row in rows) == list(range(6))
    assert all(row["calls"] == row["n"] % 4 + 1 for row in rows)


def test_a_row_whose_calls_all_fail_is_refused_with_what_was_tried(drive):
    calls = failing_at_first(lambda n: 9 if n == 4 else n)
    step = drive(MapAsync(calls, 6, timeout=0.01, on_error="dead_letter", retries=Retries(4, backoff=0.001)))
    assert [row["n"] for row in step.process(ROWS)] == [0, 1, 2, 3]
    tried = r"\(called 5 times in \d\.\d s: ConnectionError \(3 times\), RecordError \(2 times\)\)"
    four, five = sorted(step.rows["dead_letters"], key=lambda letter: letter["record"])
    assert (four["error"], five["error"]) == ("ConnectionError", "ConnectionError")
    assert re.fullmatch(f"4 is refused {tried}", four["message"])
    with pytest.raises(RecordError, match=rf"(?s)call raised ConnectionError: 0 is refused {tried}.*record: \{{'n': 0\}}"):
        drive(MapAsync(failing_at_first(lambda n: 9), 1, timeout=0.01, retries=Retries(4, backoff=0.001))).process(ROWS)


@pytest.mark.parametrize("error", [MemoryError(), asyncio.CancelledError(), SystemExit(1)])
def test_an_error_that_is_not_the_calls_is_not_repeated(drive, error):
    calls = []

    async def call(row):
        calls.append(row)
        raise error

    with pytest.raises(RecordError, match=f"call raised {type(error).__name__}"):
        drive(MapAsync(call, 1, retries=Retries(5, backoff=0.001))).process(ROWS)
    assert len(calls) == 1


def test_pauses_between_calls_double_up_to_half_a_minute():
    retries = Retries(9, backoff=0.5)
    pauses = [retries.pause(failures, Random(failures)) for failures in range(1, 11)]
    most = [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert pauses.pop() is None
    assert all(longest / 2 <= pause <= longest for pause, longest in zip(pauses, most, strict=True))
    assert Retries(2, backoff=60.0).longest_pause(2) == 60


class Client:
    """A client that belongs to the loop in which it is created."""

    closed = 0

    def __init__(self):
        self.loop = asyncio.get_running_loop()

    async def __call__(self, row):
        assert asyncio.get_running_loop() is self.loop
        return row

    async def close(self):
        assert asyncio.get_running_loop() is self.loop
        Client.closed += 1


def test_class_is_made_and_closed_inside_the_loop(drive):
    step = drive(MapAsync(Client))
    assert step.process(ROWS) == ROWS
    step.operator.close()
    step.operator.close()
    assert Client.closed == 1


class Stuck(Client):
    async def close(self):
        raise OSError("gone")


class Broken(Client):
    def __init__(self):
        raise OSError("no server")


def test_constructor_or_close_that_raises_names_the_operator(drive):
    with pytest.raises(RecordError, match="operator `step`: the constructor of Broken raised OSError: no server"):
        drive(MapAsync(Broken))
    step = drive(MapAsync(Stuck))
    with pytest.warns(RuntimeWarning, match=r"operator `step`: Stuck\.close raised OSError: gone"):
        step.operator.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step.operator.close()
