"""One run of a benchmark as one JSON file: the conditions, every iteration, the verdicts, and what was not measured."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Literal

from ...engine.errors import ConnectorError

BUSY = 0.1
"""The share of the machine that other programs may use without disturbing a measurement."""

Better = Literal["higher", "lower"]


@dataclass(frozen=True, slots=True)
class Case:
    """One measurement: `values` in `unit`, one per iteration, with `details` of each."""

    name: str
    unit: str
    better: Better
    values: tuple[float, ...]
    details: tuple[Mapping[str, Any], ...] = ()

    @property
    def median(self) -> float:
        return median(self.values)


def medians(cases: Sequence[Case]) -> dict[str, float]:
    """Return the median of each case by name."""
    return {case.name: case.median for case in cases}


@dataclass(frozen=True, slots=True)
class Verdict:
    """A target next to the measured value."""

    claim: str
    measured: float
    target: float
    better: Better

    @property
    def met(self) -> bool:
        """True if the target is reached.

        >>> Verdict("p99 in ms", 14.0, 15.0, "lower").met
        True
        """
        return self.measured >= self.target if self.better == "higher" else self.measured <= self.target


def ratio_verdicts(cases: Sequence[Case], targets: Sequence[tuple[str, str, float, str]]) -> list[Verdict]:
    """Return a verdict for each target (ours, theirs, ratio, claim) whose two cases were measured."""
    found = medians(cases)
    return [
        Verdict(claim, found[ours] / found[theirs], target, "higher")
        for ours, theirs, target, claim in targets
        if ours in found and theirs in found
    ]


@dataclass(frozen=True, slots=True)
class Findings:
    """The result of a benchmark: measurements, verdicts, checks that passed, and series to draw. `facts`: what it chose itself."""

    cases: Sequence[Case]
    verdicts: Sequence[Verdict] = ()
    checks: Sequence[str] = ()
    series: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __add__(self, other: Findings) -> Findings:
        return Findings(
            [*self.cases, *other.cases], [*self.verdicts, *other.verdicts], [*self.checks, *other.checks],
            {**self.series, **other.series}, {**self.facts, **other.facts},
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run. `started`: ISO 8601, UTC. `busy`: the largest share of the machine that other programs used before a measurement."""

    benchmark: str
    started: str
    machine: Mapping[str, Any]
    versions: Mapping[str, str]
    commit: str
    arguments: Mapping[str, Any]
    cases: tuple[Case, ...]
    verdicts: tuple[Verdict, ...] = ()
    checks: tuple[str, ...] = ()
    not_measured: tuple[str, ...] = ()
    series: Mapping[str, Any] = field(default_factory=dict)
    busy: float = 0.0

    @property
    def disturbed(self) -> bool:
        """True if other programs used so much of the machine that they may have changed the verdicts."""
        return self.busy > BUSY

    def case(self, name: str) -> Case | None:
        """Return the case of that name, or None."""
        return next((case for case in self.cases if case.name == name), None)

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1)

    @staticmethod
    def from_json(text: str) -> Run:
        """Parse the output of `to_json`. Raises ValueError, KeyError or TypeError for other text."""
        fields = json.loads(text)
        cases = tuple(Case(**{**c, "values": tuple(c["values"]), "details": tuple(c["details"])}) for c in fields.pop("cases"))
        verdicts = tuple(Verdict(**v) for v in fields.pop("verdicts"))
        checks, not_measured = tuple(fields.pop("checks")), tuple(fields.pop("not_measured"))
        return Run(cases=cases, verdicts=verdicts, checks=checks, not_measured=not_measured, **fields)

    @staticmethod
    def read(path: Path) -> Run:
        """Read a run. Raises ConnectorError for a file that is missing or is no run."""
        try:
            return Run.from_json(path.read_text())
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConnectorError(f"{path} is not the JSON of a benchmark run: {type(error).__name__}: {error}") from error
