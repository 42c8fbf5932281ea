"""No decision leaves the bounds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evenflow.scheduler.policies.bounds import within_bounds
from evenflow.scheduler.policies.dataflow.figures import OperatorFigures
from evenflow.scheduler.policies.dataflow.settings import PolicySettings
from evenflow.scheduler.policies.dataflow.snapshot import DataflowSnapshot

WORKERS = st.integers(1, 100)


@given(WORKERS, WORKERS, WORKERS, WORKERS, st.none() | WORKERS, st.none() | WORKERS)
def test_decided_parallelism_is_always_within_the_bounds(now, wanted, a, b, key_groups, max_change):
    low, high = sorted((a, b))
    settings = PolicySettings(min_parallelism=low, max_parallelism=high, max_change=max_change)
    changed, notes = within_bounds(DataflowSnapshot((OperatorFigures("o", now, key_groups=key_groups),), settings=settings), {"o": wanted})
    decided = changed.get("o", now)
    top = min(high, key_groups or high)
    assert decided != now or not changed
    assert min(low, top) <= decided <= top
    if decided != wanted:
        assert notes


def test_an_operators_own_bounds_count_more_than_the_settings():
    own = OperatorFigures("o", 4, min_parallelism=3, max_parallelism=6)
    snapshot = DataflowSnapshot((own,), settings=PolicySettings(max_parallelism=50))
    assert within_bounds(snapshot, {"o": 1})[0] == {"o": 3}
    assert within_bounds(snapshot, {"o": 40})[0] == {"o": 6}


def test_operators_of_a_chain_get_what_the_neediest_wants():
    chained = tuple(OperatorFigures(name, 2, chain="x") for name in ("a", "b"))
    assert within_bounds(DataflowSnapshot(chained), {"b": 5})[0] == {"a": 5, "b": 5}


def test_operators_that_keep_their_workers_are_not_in_a_decision():
    assert within_bounds(DataflowSnapshot((OperatorFigures("o", 4),)), {"o": 4}) == ({}, ())
