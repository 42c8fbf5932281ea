"""The panes of a window, and when they are needed."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.engine.errors import FlowError
from evenflow.engine.time.windows import Windows, sliding, tumbling


@st.composite
def some_windows(draw):
    slide = draw(st.integers(1, 12))
    return Windows(size=draw(st.integers(slide, 40)), slide=slide, offset=draw(st.integers(0, 50)))


def ends_of(windows: Windows, time: int) -> list[int]:
    """Return the ends of all windows that contain the time, by checking each."""
    near = range(time - windows.size + 1, time + 1)
    return [start + windows.size for start in near if (start - windows.offset) % windows.slide == 0]


@given(windows=some_windows(), time=st.integers(-1000, 1000))
def test_pane_is_needed_from_the_first_to_the_last_window_that_has_it(windows, time):
    (pane,) = windows.pane_of(np.array([time])).tolist()
    ends = ends_of(windows, time)
    assert pane <= time < pane + windows.pane
    if ends:
        assert (windows.first_end(pane), windows.last_end(pane)) == (min(ends), max(ends))


@given(windows=some_windows(), time=st.integers(-1000, 1000))
def test_all_times_of_a_pane_fall_into_the_same_windows(windows, time):
    (pane,) = windows.pane_of(np.array([time])).tolist()
    assert all(ends_of(windows, other) == ends_of(windows, time) for other in range(pane, pane + windows.pane))


def test_tumbling_windows_are_one_pane_each():
    assert tumbling("1h").pane == 3_600_000_000
    assert sliding("1h", every="25m").pane == 300_000_000


@pytest.mark.parametrize("size", ["0s", 0, timedelta(0)])
def test_window_of_no_length_is_refused(size):
    with pytest.raises(FlowError, match="longer than zero"):
        tumbling(size)


def test_gap_between_windows_is_refused():
    with pytest.raises(FlowError, match="would leave gaps"):
        sliding("1m", every="2m")


@pytest.mark.parametrize("size", ["1 fortnight", "h1", None, "", "-1s", True, [1]])
def test_size_that_is_no_duration_is_refused_by_name(size):
    with pytest.raises(FlowError, match=r"window size .* is not a duration"):
        tumbling(size)
