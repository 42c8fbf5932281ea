from __future__ import annotations

import pickle
import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.connectors.generated.generate import generate, zipf_cdf
from evenflow.connectors.generated.numbered import Pace
from evenflow.connectors.share import Share
from evenflow.engine.errors import FlowError


class Clock:
    """A clock whose seconds a test advances."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def table(reader, max_rows=1000):
    batches = []
    while not reader.finished:
        batches.append(reader.poll(max_rows).rows)
    return pa.Table.from_batches(batches)


@given(parallelism=st.integers(1, 4), max_rows=st.integers(1, 50), seed=st.integers(0, 5))
def test_the_rows_depend_neither_on_the_workers_nor_on_the_batches(parallelism, max_rows, seed):
    source = generate(total=100, keys=20, zipf=1.1, max_delay=0.05, seed=seed)
    shares = [table(source.reader(index, parallelism), max_rows) for index in range(parallelism)]
    assert pa.concat_tables(shares).sort_by("seq").equals(table(source.reader(0, 1)))


def test_another_seed_gives_other_rows():
    first, second = (table(generate(total=100, seed=seed).reader(0, 1)) for seed in (1, 2))
    assert first["key"] != second["key"]
    assert first["value"] != second["value"]


def test_the_columns_have_their_types():
    batch = generate(total=1, string_keys=True, created=True).reader(0, 1).poll(1)
    assert batch.rows.schema.types == [pa.string(), pa.int64(), pa.float64(), pa.int64(), pa.int64()]
    assert batch.rows["key"][0].as_py().startswith("key-")


def test_sums_of_values_are_exact_in_any_order():
    values = table(generate(total=10_000).reader(0, 1))["value"].to_numpy()
    assert np.array_equal(values * 8, np.floor(values * 8))
    assert values.min() >= 0
    assert values.max() < 1000


def test_event_time_passes_at_the_event_rate():
    rows = table(generate(total=4, start_time=5_000, event_rate=2).reader(0, 1))
    assert rows["ts"].to_pylist() == [5_000, 5_500, 6_000, 6_500]


def test_rows_are_older_by_at_most_the_delay():
    on_time, late = (table(generate(total=1000, max_delay=delay).reader(0, 1))["ts"].to_numpy() for delay in (0, 0.01))
    assert set((on_time - late).tolist()) == set(range(11))


@pytest.mark.parametrize("zipf", [0.0, 0.8, 1.2])
def test_keys_come_as_often_as_their_distribution_says(zipf):
    keys, total = 50, 200_000
    counts = np.bincount(table(generate(total=total, keys=keys, zipf=zipf).reader(0, 1), 8192)["key"].to_numpy(), minlength=keys)
    share = np.diff(zipf_cdf(keys, zipf), prepend=0.0)
    assert len(counts) == keys
    # Five standard deviations of a binomial count.
    assert np.all(np.abs(counts - total * share) < 5 * np.sqrt(total * share))


@pytest.mark.parametrize(("options", "rows"), [({}, 50), ({"every": "20ms"}, 1_000)])
def test_a_paced_reader_returns_the_rows_of_a_millisecond_or_of_the_given_time_at_once(options, rows):
    clock = Clock()
    reader = generate(rate=50_000, clock=clock, **options).reader(0, 1)
    sizes = []
    for _ in range(20):
        batch = reader.poll(8192)
        sizes += [] if batch is None else [batch.num_rows]
        clock.now += reader.ready_in()
    assert sizes
    assert rows - 1 <= min(sizes) <= max(sizes) <= rows + 1


@given(rate=st.floats(0.01, 1e7), steps=st.lists(st.floats(0, 2.0), max_size=20))
def test_a_row_is_due_after_the_wait_that_the_pace_asks_for(rate, steps):
    clock, given_rows = Clock(), 0
    pace = Pace(rate, 0.001, clock)
    for step in steps:
        clock.now += step
        given_rows += pace.due(given_rows)
    for _ in range(3):
        if due := pace.due(given_rows):
            break
        clock.now += pace.wait(given_rows)
    else:
        due = pace.due(given_rows)
    assert due > 0


def test_workers_share_the_rate():
    clock = Clock()
    readers = [generate(rate=1000, clock=clock).reader(index, 4) for index in range(4)]
    assert [reader.poll(8192) for reader in readers] == [None] * 4
    clock.now = 1.0
    assert sum(reader.poll(8192).num_rows for reader in readers) == 1000


def test_after_a_stall_it_catches_up_in_bounded_batches():
    clock = Clock()
    reader = generate(rate=1000, rows_per_batch=300, clock=clock).reader(0, 1)
    reader.poll(8192)
    clock.now = 1.0
    assert [reader.poll(8192).num_rows for _ in range(4)] == [300, 300, 300, 100]
    assert reader.poll(8192) is None


def test_a_sought_reader_keeps_the_rate_and_not_the_lost_time():
    clock = Clock()
    reader = generate(rate=1000, clock=clock).reader(0, 1)
    clock.now = 100.0
    reader.seek(Share.of(0, 1).since(500).encode())
    assert reader.poll(8192) is None
    clock.now = 100.5
    assert reader.poll(8192).rows["seq"].to_pylist() == list(range(500, 1000))


def test_created_is_when_the_row_was_due():
    clock = Clock()
    reader = generate(rate=1000, created=True, clock=clock).reader(0, 1)
    before = time.time_ns()
    reader.poll(8192)
    after = time.time_ns()
    clock.now = 0.01
    created = reader.poll(8192).rows["created"].to_pylist()
    assert before <= created[0] <= after
    assert np.diff(created).tolist() == [1_000_000] * 9


def test_the_source_can_be_sent_to_a_worker():
    source = generate(total=10, rate=5.0)
    assert pickle.loads(pickle.dumps(source)).reader(0, 1).poll(1) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rate": 0}, "rate is 0; it must be above 0"),
        ({"event_rate": -1}, "event_rate is -1"),
        ({"keys": 0}, "keys is 0; it must be a whole number of at least 1"),
        ({"rows_per_batch": 0}, "rows_per_batch is 0"),
        ({"total": -1}, "total is -1"),
        ({"zipf": -0.5}, "zipf is -0.5"),
    ],
)
def test_impossible_arguments_are_refused(arguments, message):
    with pytest.raises(FlowError, match=message):
        generate(**arguments)
