from __future__ import annotations

from math import isnan

from evenflow.bench.plots import plot
from evenflow.bench.record import Run
from evenflow.bench.scaling_plots import panels, with_gaps

COURSE = {"time": [0.0, 1.0], "workers": {"a": [1, 2], "b": [1, 1]}, "optimum": {"a": [2, 2], "b": [1, 1]}}
CURVE = [(-0.05, 3.0, 4.0), (0.0, 3.0, 4.0), (2.0, 9.0, 9.0)]


def run(**series):
    return Run("scaling", "2026-01-01T00:00:00+00:00", {}, {}, "abc", {}, (), series=series)


def test_every_course_that_scales_linearly_has_a_panel_and_the_scalings_one_together():
    series = {"model, linear, ds2": COURSE, "model, 2% overhead, ds2": COURSE, "Ray, ds2": COURSE, "scaling, 2 to 3, live": CURVE}
    assert panels(run(**series, **{"scaling, 3 to 2, live": CURVE})) == ["model, linear, ds2", "Ray, ds2", "scaling, 2 to 3"]


def test_a_run_of_parts_that_have_no_series_has_no_plot(tmp_path):
    assert not plot(run(), tmp_path / "none.png")
    assert not (tmp_path / "none.png").exists()


def test_a_plot_is_drawn_of_courses_and_scalings(tmp_path):
    assert plot(run(**{"Ray, ds2": COURSE, "scaling, 2 to 3, live": CURVE}), tmp_path / "both.png")
    assert (tmp_path / "both.png").stat().st_size > 1000


def test_a_curve_has_a_gap_where_nothing_was_read():
    times, p99 = with_gaps(CURVE)
    assert times == [-0.05, 0.0, 0.0, 2.0]
    assert [isnan(value) for value in p99] == [False, False, True, False]
