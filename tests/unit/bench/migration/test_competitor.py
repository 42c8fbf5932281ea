"""Processes that take processor time in place of a move."""

from __future__ import annotations

import os
import resource

import pytest

from evenflow.bench.harness.errors import BenchmarkError
from evenflow.bench.migration.competitor import SLICE, compete


def test_competitors_take_processor_time_and_have_ended_on_return():
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    compete(1.5, 0.1, os.getpriority(os.PRIO_PROCESS, 0))
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before >= 2 * SLICE


def test_a_competitor_that_fails_is_an_error():
    with pytest.raises(BenchmarkError, match=r"\[1\]"):
        compete(1.0, 0.1, "not a priority")
