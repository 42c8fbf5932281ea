"""The error of a benchmark that has no valid result."""

from __future__ import annotations

from ...state.errors import EvenflowError


class BenchmarkError(EvenflowError):
    """A benchmark that failed, or whose results are wrong or can't be compared."""
