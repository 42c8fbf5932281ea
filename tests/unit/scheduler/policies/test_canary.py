from __future__ import annotations

from dataclasses import replace

from evenflow.scheduler.load.batch_costs import BatchCosts
from evenflow.scheduler.load.window import WorkerWindow
from evenflow.scheduler.policies.canary import StageComparison, VersionFigures, objection


def window(start, rows, seconds_per_row, *, batches=10, fixed=0.0, skipped=0, out=None):
    costs = BatchCosts()
    for number in range(batches):
        size = rows // batches + number % 3
        costs += BatchCosts.of(size, fixed + size * seconds_per_row)
    return WorkerWindow(
        "price-0", start, 1.0, rows, rows if out is None else out, costs.seconds, skipped_records=skipped, state_bytes=100, costs=costs
    )


def figures(*windows, since=0.0):
    return VersionFigures.of([list(windows)], since, sends=True)


def compared(old, new, max_errors=0, max_slowdown=2.0):
    return objection(StageComparison("price", old, new), max_errors, max_slowdown)


def test_figures_are_those_of_the_watch_and_errors_since_it_began():
    seen = figures(*(window(at, 1000, 1e-5, skipped=5 + at) for at in range(5)), since=2.0)
    assert (seen.rows, seen.windows, seen.errors, seen.state_bytes) == (3000, 3, 9 - 6, 100)


def test_new_workers_without_windows_before_the_watch_have_all_their_errors():
    assert figures(window(3, 1000, 1e-5, skipped=4), since=2.0).errors == 4


def test_workers_without_windows_count_nothing():
    assert VersionFigures.of([[], []], 0.0, sends=False) == VersionFigures()
    assert VersionFigures().microseconds is None
    assert VersionFigures().selectivity is None


def test_code_that_does_as_well_meets_no_objection():
    old = figures(*(window(at, 9500, 1e-5) for at in range(5)))
    new = figures(*(window(at, 500, 1.2e-5) for at in range(5)))
    assert compared(old, new) is None


def test_more_refused_records_than_the_old_code_has_and_than_are_allowed_are_an_objection():
    old = figures(*(window(at, 9500, 1e-5, skipped=95 * (at + 1)) for at in range(5)))
    usual = figures(*(window(at, 500, 1e-5, skipped=5 * (at + 1)) for at in range(5)))
    more = figures(*(window(at, 500, 1e-5, skipped=50 * (at + 1)) for at in range(5)))
    assert compared(old, usual) is None
    assert "refused 250 of 2500 records" in compared(old, more)
    assert compared(old, more, max_errors=250) is None


def test_slower_code_is_an_objection_once_enough_is_known():
    old = figures(*(window(at, 9500, 1e-4) for at in range(5)))
    slow = [window(at, 500, 1e-3) for at in range(5)]
    assert compared(old, figures(*slow[:2])) is None
    assert "the new code takes" in compared(old, figures(*slow))
    assert compared(old, figures(*slow), max_slowdown=20.0) is None


def test_small_batches_do_not_make_new_code_look_slow():
    """A batch has a cost of its own, and the canary gets small ones."""
    old = figures(*(window(at, 9500, 1e-6, fixed=1e-3) for at in range(5)))
    new = figures(*(window(at, 100, 1e-6, fixed=1e-3) for at in range(5)))
    assert new.microseconds > 20 * old.microseconds
    assert compared(old, new) is None


def test_one_batch_that_stalls_does_not_make_new_code_look_slow():
    old = figures(*(window(at, 9500, 1e-5) for at in range(5)))
    new = [window(at, 500, 1e-5) for at in range(5)]
    stalled = replace(new[0], costs=new[0].costs + BatchCosts.of(50, 0.4))
    assert compared(old, figures(stalled, *new[1:])) is None
    slow = [replace(one, costs=one.costs + BatchCosts.of(50, 0.4)) for one in new for _ in range(10)]
    assert "the new code takes at least" in compared(old, figures(*slow))


def test_large_batches_of_the_old_code_that_stall_do_not_make_new_code_look_slow():
    sizes = [(10, 3e-4), (200, 3e-4)] * 50 + [(1000, 0.2)] * 5
    old = VersionFigures(16_500, windows=5, costs=sum((BatchCosts.of(*one) for one in sizes), BatchCosts()))
    new = VersionFigures(1000, windows=5, costs=sum([BatchCosts.of(10, 3e-4)] * 100, BatchCosts()))
    assert compared(old, new) is None


def test_a_few_microseconds_more_are_not_noticed():
    old = figures(*(window(at, 9500, 1e-6) for at in range(5)))
    new = figures(*(window(at, 500, 1.5e-5) for at in range(5)))
    assert compared(old, new) is None
