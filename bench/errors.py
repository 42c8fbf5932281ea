"""What a benchmark raises when a figure can't be had."""

from __future__ import annotations

from ..state.errors import EvenflowError


class BenchmarkError(EvenflowError):
    """A benchmark did not come to a result, or its results differ or can't be compared."""
