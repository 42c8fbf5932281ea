"""Compares two runs of one benchmark; a difference within the noise band is called noise.

>>> from .record import Case
>>> compare_case(Case("t1", "rows/s", "higher", (10.0, 10.1)), Case("t1", "rows/s", "higher", (12.0, 12.1))).verdict
'better'
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .errors import BenchmarkError
from .record import Case, Run
from .statistics import is_noise, noise_band


@dataclass(frozen=True, slots=True)
class Difference:
    """A case's medians in two runs. `ratio`: after / before; `noise`: the band of ratios around 1 that chance explains."""

    name: str
    unit: str
    before: float
    after: float
    noise: float
    verdict: Literal["better", "worse", "noise"]

    @property
    def ratio(self) -> float:
        return self.after / self.before if self.before else float("inf")


def compare(a: Run, b: Run) -> list[Difference]:
    """Compare the cases that both runs have. Raises BenchmarkError for different benchmarks, and without a common case."""
    if a.benchmark != b.benchmark:
        raise BenchmarkError(f"`{a.benchmark}` and `{b.benchmark}` are different benchmarks: compare two runs of one")
    pairs = [(case, other) for case in a.cases if (other := b.case(case.name)) is not None]
    if not pairs:
        raise BenchmarkError(f"the two runs of `{a.benchmark}` have no case in common")
    return [compare_case(case, other) for case, other in pairs]


def compare_case(a: Case, b: Case) -> Difference:
    """Compare one case in two runs."""
    verdict: Literal["better", "worse", "noise"] = "noise"
    if not is_noise(a.values, b.values):
        verdict = "better" if (b.median > a.median) == (a.better == "higher") else "worse"
    return Difference(a.name, a.unit, a.median, b.median, noise_band(a.values, b.values), verdict)


def other_conditions(a: Run, b: Run) -> list[str]:
    """List the conditions besides the code in which two runs differ."""
    parts = (("machine: {}", a.machine, b.machine), ("version of {}:", a.versions, b.versions), ("argument {}:", a.arguments, b.arguments))
    return [f"{what.format(n)} {v} and {other.get(n)}" for what, one, other in parts for n, v in one.items() if v != other.get(n)]
