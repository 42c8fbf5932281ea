"""A column of the heat map shows the workers' measurements, whichever worker owns it and however many key groups there are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.scheduler.load.window import WorkerWindow
from evenflow.views.heat import ARROWS, ROWS, bands, by_owner, moves, owners_before, rows_of
from evenflow.views.time_bucket import TimeBucket, parts

LOADS = st.lists(st.floats(0, 1), min_size=8, max_size=8).map(np.array)
OWNERS = st.lists(st.integers(0, 2), min_size=8, max_size=8).map(np.array)


@given(LOADS, OWNERS)
def test_each_row_is_a_key_group_at_its_owners_place(load, owners):
    values, groups = rows_of(load, by_owner(owners))
    assert sorted(groups.tolist()) == list(range(8))
    assert values.tolist() == load[groups].astype(np.float32).tolist()
    edges = np.cumsum(bands(owners, 3))
    assert [int(np.searchsorted(edges, row, side="right")) for row in range(8)] == owners[groups].tolist()


@pytest.mark.parametrize("groups", [1, 2, 256, 512, 32_768])
def test_no_column_has_more_rows_than_a_screen_and_none_hides_the_hottest(groups):
    load = np.random.default_rng(groups).random(groups)
    values, shown = rows_of(load, by_owner(np.arange(groups) % 7))
    assert len(values) == len(shown) == min(groups, ROWS)
    assert int(load.argmax()) in shown.tolist()
    assert values.max() == np.float32(load.max())


def test_moves_are_listed_by_pair_with_the_hottest_groups_first():
    before, after = np.array([0, 0, 0, 1]), np.array([1, 0, 1, 1])
    (move,) = moves(before, after, np.array([0.1, 0.9, 0.5, 0.2]))
    assert (move["from"], move["to"], move["count"]) == (0, 1, 2)
    assert move["groups"] == [[2, 2, 2], [0, 0, 1]]


@pytest.mark.parametrize("group", [1, 100, 463, 511])
def test_group_that_moves_to_the_next_worker_is_not_at_the_edge_between_them(group):
    before = np.repeat([0, 1], 512)
    after = before.copy()
    after[group] = 1
    ((_, row_before, row_after),) = moves(before, after, np.ones(1024))[0]["groups"]
    assert 0 <= row_before < ROWS // 2
    assert ROWS // 2 + 2 < row_after < ROWS


def test_only_a_few_of_many_moves_are_drawn():
    (move,) = moves(np.zeros(1024, int), np.ones(1024, int), np.ones(1024))
    assert move["count"] == 1024
    assert len(move["groups"]) == ARROWS


def test_nothing_moves_where_nothing_has_changed():
    assert moves(np.zeros(4), np.zeros(4), np.ones(4)) == []


@given(st.floats(0, 100), st.floats(0.01, 30))
def test_the_parts_of_a_window_are_the_window(start, length):
    found = list(parts(WorkerWindow("count-0", start, length)))
    assert sum(part for _, part in found) == pytest.approx(1.0, abs=1e-4)
    assert [second for second, _ in found] == list(range(found[0][0], found[-1][0] + 1))
    assert found[0][0] - 1e-5 * length <= start < found[0][0] + 1


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0.1, 3), st.integers(0, 100)), min_size=1))
def test_seconds_add_up_to_the_windows(windows):
    seconds: dict[int, TimeBucket] = {}
    for start, length, rows in windows:
        window = WorkerWindow(
            "count-0", start, length, rows_in=rows, useful=length / 2, groups=np.array([1], np.int32), load=np.array([length])
        )
        for at, part in parts(window):
            seconds.setdefault(at, TimeBucket()).add(window, part, 2)
    assert sum(second.workers["count-0"].rows_in for second in seconds.values()) == pytest.approx(
        sum(rows for *_, rows in windows), rel=1e-4
    )
    assert sum(second.load[1] for second in seconds.values()) == pytest.approx(sum(length for _, length, _ in windows), rel=1e-4)
    assert all(second.load[0] == 0 for second in seconds.values())


def measured(worker, *groups):
    return WorkerWindow(f"count-{worker}", 0.0, 1.0, groups=np.array(groups, np.int32), load=np.ones(len(groups)))


@pytest.mark.parametrize(
    ("windows", "owners"),
    [
        pytest.param([measured(0, 0, 1), measured(1, 2)], [0, 0, 1, 1], id="as now"),
        pytest.param([measured(0, 0, 1, 2), measured(1)], [0, 0, 0, 1], id="one was another's"),
        pytest.param([measured(0, 0, 2), measured(1, 2)], [0, 0, 1, 1], id="measured by both: on its way"),
        pytest.param([], [0, 0, 1, 1], id="nothing measured"),
    ],
)
def test_the_only_worker_that_measured_a_group_owned_it(windows, owners):
    assert owners_before(np.array([0, 0, 1, 1]), windows).tolist() == owners
