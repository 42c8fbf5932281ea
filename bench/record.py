"""One run of a benchmark as one JSON file: the conditions, every iteration, the verdicts, and what was not measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Literal

from ..engine.errors import ConnectorError

BUSY = 0.1
"""The share of the machine that other programs may use without disturbing a measurement."""


@dataclass(frozen=True, slots=True)
class Case:
    """One measurement: `values` in `unit`, one per iteration, with `details` of each."""

    name: str
    unit: str
    better: Literal["higher", "lower"]
    values: tuple[float, ...]
    details: tuple[Mapping[str, Any], ...] = ()

    @property
    def median(self) -> float:
        return median(self.values)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A target beside the measured value."""

    claim: str
    measured: float
    target: float
    better: Literal["higher", "lower"]

    @property
    def met(self) -> bool:
        """Whether the target is reached.

        >>> Verdict("p99 in ms", 14.0, 15.0, "lower").met
        True
        """
        return self.measured >= self.target if self.better == "higher" else self.measured <= self.target


@dataclass(frozen=True, slots=True)
class Run:
    """`started`: ISO 8601, UTC. `busy`: the largest share of the machine that other programs used right before a measurement."""

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
        """Whether other programs used so much of the machine that they may have changed the verdicts."""
        return self.busy > BUSY

    def case(self, name: str) -> Case | None:
        """The case of that name, None if it was not run."""
        return next((case for case in self.cases if case.name == name), None)

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1)

    @staticmethod
    def from_json(text: str) -> Run:
        """Raises ValueError, KeyError or TypeError for anything that `to_json` didn't make."""
        fields = json.loads(text)
        cases = tuple(Case(**{**c, "values": tuple(c["values"]), "details": tuple(c["details"])}) for c in fields.pop("cases"))
        verdicts = tuple(Verdict(**v) for v in fields.pop("verdicts"))
        checks, not_measured = tuple(fields.pop("checks")), tuple(fields.pop("not_measured"))
        return Run(cases=cases, verdicts=verdicts, checks=checks, not_measured=not_measured, **fields)

    @staticmethod
    def read(path: Path) -> Run:
        """Raises ConnectorError for a file that is missing or is no run."""
        try:
            return Run.from_json(path.read_text())
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConnectorError(f"{path} is not the JSON of a benchmark run: {type(error).__name__}: {error}") from error
