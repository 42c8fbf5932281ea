"""Errors are found, and named with the seed that reproduces them."""

from __future__ import annotations

from random import Random

import pytest

import evenflow as ef
from evenflow.engine.batch import Batch
from evenflow.engine.operators.aggregation.aggregate_running import AggregateRunning
from evenflow.testing import ACTIONS, Choice, SimulationError, check, in_order
from evenflow.testing.comparison import row_differences, update_differences


def counts(emit="final"):
    flow = ef.Dataflow("counts")
    rows = flow.read(ef.from_items([{"k": i % 3, "seq": i} for i in range(30)]))
    rows.key_by("k").aggregate(n=ef.count(), emit=emit).write(ef.to_list([]))
    return flow


def accident(happens, most=20):
    """Return an action that lets `happens(elements, random)` change the elements on a channel with a batch, at most `most` times
    a run.
    """

    def once(world, channel):
        world.accidents += 1
        happens(channel, world.random)

    def action(world):
        for channel in world.channels.values():
            if world.accidents < most and any(isinstance(element, Batch) for element in channel.elements):
                yield Choice("accident", "accident", once, (world, channel))

    return action


def lose(channel, random: Random):
    """Lose a batch."""
    place = random.choice([i for i, element in enumerate(channel.elements) if isinstance(element, Batch)])
    del channel.elements[place]


def repeat(channel, random: Random):
    """Repeat a batch."""
    place = random.choice([i for i, element in enumerate(channel.elements) if isinstance(element, Batch)])
    channel.elements.insert(place, channel.elements[place])


@pytest.mark.parametrize(("happens", "words"), [(lose, "missing"), (repeat, "too many")], ids=["lost", "repeated"])
@pytest.mark.parametrize("emit", ["final", "update"])
def test_batch_that_is_lost_or_repeated_is_found(happens, words, emit):
    config = ef.JobConfig(combine=False, network=ef.NetworkConfig(batch_rows=4))
    with pytest.raises(SimulationError, match=r"the flow `counts` with seed \d+ and 2 workers:") as caught:
        check(lambda: counts(emit), range(20), config=config, actions=(*ACTIONS, accident(happens)))
    assert words in str(caught.value)
    assert any("run it again: check(make_flow, seeds=[" in note for note in caught.value.__notes__)


def test_rows_in_another_order_are_found_where_order_is_asked_for():
    def swap(channel, random: Random):
        places = [i for i, element in enumerate(channel.elements) if isinstance(element, Batch)]
        first, second = random.choice(places), random.choice(places)
        channel.elements[first], channel.elements[second] = channel.elements[second], channel.elements[first]

    def ordered():
        flow = ef.Dataflow("ordered")
        rows = flow.read(ef.from_items([{"k": i % 3, "seq": i} for i in range(60)]))
        rows.key_by("k").stateful_map(in_order("seq", lanes=2)).write(ef.to_list([]))
        return flow

    check(ordered, range(10))
    with pytest.raises(ef.RecordError, match=r"(?s)`seq` \d+ came behind \d+.*key: "):
        check(ordered, range(20), config=ef.JobConfig(network=ef.NetworkConfig(batch_rows=2)), actions=(*ACTIONS, accident(swap)))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        pytest.param([{"k": 1, "n": 1, "low": 5}, {"k": 1, "n": 3, "low": 2}], [], id="onwards"),
        pytest.param(
            [{"k": 1, "n": 3, "low": 2}, {"k": 1, "n": 3, "low": 2}], ["`n` of key (1,) went from 3 to 3"], id="a count that stays"
        ),
        pytest.param(
            [{"k": 1, "n": 1, "low": 1}, {"k": 1, "n": 3, "low": 2}], ["`low` of key (1,) went from 1 to 2"], id="a minimum that rises"
        ),
        pytest.param([{"k": 1, "n": 2, "low": 2}], ["1 row too many", "1 row missing"], id="another last row"),
    ],
)
def test_updates_must_go_on_to_the_last_row(rows, words):
    operator = AggregateRunning(("k",), {"n": ef.count(), "low": ef.min("v")}, updates=True)
    found = update_differences(operator, rows, [{"k": 1, "n": 1, "low": 2}, {"k": 1, "n": 3, "low": 2}])
    assert [difference[: len(word)] for difference, word in zip(found, words, strict=True)] == words


def test_late_records_are_found_because_they_depend_on_the_run():
    def late():
        flow = ef.Dataflow("late")
        rows = [{"k": 1, "ts": ts} for ts in (1_000, 50_000, 2_000, 60_000, 3_000, 70_000)] * 3
        results = flow.read(ef.from_items(rows, event_time="ts")).key_by("k").window(ef.tumbling("1s")).aggregate(n=ef.count())
        results.write(ef.to_list([]))
        return flow

    with pytest.raises(SimulationError, match="records were late for `aggregate`"):
        check(late, range(20))


def test_parallelism_is_chosen_by_the_seed():
    plans = []

    def counted():
        flow = counts()
        plan = flow.plan
        flow.plan = lambda **options: plans.append(options["config"].parallelism) or plan(**options)
        return flow

    check(counted, range(4), parallelism=(1, 3))
    assert plans == [1, 3, 1, 3]


@pytest.mark.parametrize(
    ("rows", "expected", "words"),
    [
        ([{"a": 1}], [{"a": 1.0}], []),
        ([{"a": float("nan")}], [{"a": float("nan")}], []),
        ([{"a": 0.1 + 0.2, "b": [1]}], [{"b": (1,), "a": 0.3}], []),
        ([{"a": 1}, {"a": 1}], [{"a": 1}], ["1 row too many, the first: {'a': 1}"]),
        ([], [{"a": None}, {"a": None}], ["2 rows missing, the first: {'a': None}"]),
        ([{"a": 0.3}], [{"a": 0.300001}], ["1 row too many, the first: {'a': 0.3}", "1 row missing, the first: {'a': 0.300001}"]),
        ([{"a": 1}], [{"b": 1}], ["1 row too many, the first: {'a': 1}", "1 row missing, the first: {'b': 1}"]),
    ],
)
def test_rows_are_compared_as_multisets(rows, expected, words):
    assert row_differences(rows, expected) == words


def test_updates_into_a_sink_of_another_width_are_refused():
    def wide():
        flow = ef.Dataflow("wide")
        flow.read(ef.from_items([1])).key_by("item").aggregate(n=ef.count()).parallelism(3).write(ef.to_list([]))
        return flow

    with pytest.raises(ef.FlowError, match="the updates of `aggregate` lose their order on the way to `to_list`"):
        check(wide, [1])
