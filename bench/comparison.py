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
    """`before` and `after` are medians; `ratio` is after / before; `noise` is the band of ratios around 1 that chance explains."""

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
    """The cases that both runs have. Raises BenchmarkError for runs of different benchmarks, or without a case in common."""
    if a.benchmark != b.benchmark:
        raise BenchmarkError(f"`{a.benchmark}` and `{b.benchmark}` are different benchmarks: compare two runs of one")
    pairs = [(case, other) for case in a.cases if (other := b.case(case.name)) is not None]
    if not pairs:
        raise BenchmarkError(f"the two runs of `{a.benchmark}` have no case in common")
    return [compare_case(case, other) for case, other in pairs]


def compare_case(a: Case, b: Case) -> Difference:
    """One case in two runs."""
    if is_noise(a.values, b.values):
        verdict: Literal["better", "worse", "noise"] = "noise"
    else:
        verdict = "better" if (b.median > a.median) == (a.better == "higher") else "worse"
    return Difference(a.name, a.unit, a.median, b.median, noise_band(a.values, b.values), verdict)


def other_conditions(a: Run, b: Run) -> list[str]:
    """The differing conditions of the two runs besides the code, which may explain differences."""
    changed = [
        f"machine: {name} {a.machine.get(name)} and {b.machine.get(name)}" for name in a.machine if a.machine[name] != b.machine.get(name)
    ]
    changed += [f"version of {n}: {v} and {b.versions.get(n)}" for n, v in a.versions.items() if v != b.versions.get(n)]
    changed += [f"argument {n}: {v} and {b.arguments.get(n)}" for n, v in a.arguments.items() if v != b.arguments.get(n)]
    return changed
