"""Segments of a join's rows: their order, their matches, which are merged, and which are skipped."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.engine.joins.block import Block
from evenflow.engine.joins.row_log import SMALLEST, RowLog
from evenflow.engine.joins.segment import Segment, sorted_rows

HASHES = st.sampled_from([0, 1, 2, 3, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1])
"""Some differ in their lowest bits only."""

ROWS = st.lists(st.tuples(HASHES, st.integers(0, 9)), max_size=80)


def block(rows):
    hashes, times = np.array([h for h, _ in rows], np.uint64), np.array([t for _, t in rows], np.int64)
    return Block.of(pa.record_batch({"n": pa.array(range(len(rows)), pa.int64())}), hashes, times, times)


def numbers(some):
    return some.rows.column("n").to_pylist()


@given(ROWS)
def test_rows_are_sorted_by_hash_and_time_in_order_of_arrival(rows):
    assert numbers(sorted_rows(block(rows))) == sorted(range(len(rows)), key=lambda n: (*rows[n], n))


@given(ROWS, ROWS)
def test_sorted_runs_are_merged(first, second):
    runs = [sorted_rows(block(rows)) for rows in (first, second) if rows]
    merged = [row for some in runs for row in zip(some.hashes.tolist(), some.times.tolist(), strict=True)]
    assert numbers(sorted_rows(block(merged), of_runs=True)) == sorted(range(len(merged)), key=lambda n: (*merged[n], n))


@given(ROWS.filter(len), st.lists(st.tuples(HASHES, st.integers(0, 9), st.integers(0, 9)), max_size=20))
def test_segment_finds_the_rows_of_a_hash_within_the_bounds(rows, probes):
    segment = Segment(sorted_rows(block(rows)))
    columns = list(zip(*probes, strict=True)) if probes else [(), (), ()]
    hashes, low, high = np.array(columns[0], np.uint64), np.array(columns[1], np.int64), np.array(columns[2], np.int64)
    found = segment.find(hashes, low, high) if probes else None
    pairs = [] if found is None else zip(found.probed.tolist(), segment.block.take(found.stored).rows.column("n").to_pylist(), strict=True)
    assert sorted(pairs) == [
        (place, n)
        for place, (h, first, last) in enumerate(probes)
        for n, (hash_, time) in enumerate(rows)
        if h == hash_ and first <= time <= last
    ]


@pytest.mark.parametrize(("widest", "segments"), [(None, 1), (50, 4)])
def test_segments_are_not_merged_over_more_than_the_widest_time(widest, segments):
    log = RowLog()
    log.widest = widest
    for start in range(0, 200, 50):
        log.append(sorted_rows(block([(n, start + n % 50) for n in range(SMALLEST)])))
    assert len(log.segments) == segments
    assert len(log) == 4 * SMALLEST


def test_look_up_passes_over_segments_outside_its_bounds():
    log = RowLog()
    log.widest = 10
    for start in (0, 100, 200):
        log.append(sorted_rows(block([(n, start + n % 10) for n in range(SMALLEST)])))

    def reached(low, high):
        bounds = tuple(None if times is None else np.array(times, np.int64) for times in (low, high))
        return [segment.earliest for segment in log.reached(bounds)]

    assert reached(None, None) == [0, 100, 200]
    assert reached([109, 150], [300, 300]) == [100, 200]
    assert reached([110, 150], [300, 300]) == [200]
    assert reached(None, [99, 5]) == [0]
    assert reached(None, [100, 5]) == [0, 100]
