"""Durations as users write them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.engine.errors import FlowError
from evenflow.engine.time.duration import microseconds, seconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("250us", 250), ("2ms", 2_000), ("10s", 10_000_000), ("5m", 300_000_000), ("5min", 300_000_000), ("1h", 3_600_000_000),
        ("7d", 604_800_000_000), ("1.5s", 1_500_000), (" 3 s ", 3_000_000), (0, 0), (0.25, 250_000), (timedelta(minutes=1), 60_000_000),
    ],
)  # fmt: skip
def test_duration_is_read(text, expected):
    assert microseconds(text) == expected


@given(value=st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=10_000)))
def test_timedelta_is_exact(value):
    assert timedelta(microseconds=microseconds(value)) == value


@pytest.mark.parametrize(
    "value", ["", "s", "1", "1 y", "1s2", "-1s", -1, timedelta(-1), True, None, [], float("nan"), float("inf"), "1e3s"]
)
def test_a_wrong_duration_is_refused_with_examples(value):
    with pytest.raises(FlowError, match=r"timeout .* is not a duration: write .500ms."):
        seconds(value, "timeout")
