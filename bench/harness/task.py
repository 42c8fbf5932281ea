"""The messages between a benchmark and the process of a system: the task, and its answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .errors import BenchmarkError


@dataclass(frozen=True, slots=True)
class Task:
    """A named task over `rows` rows in `folder`; `output` is a folder for the system alone. `last_window` as in `Dataset`."""

    name: str
    folder: str
    rows: int
    last_window: int
    output: str
    repeat: int
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def files(self) -> list[str]:
        """The data's files in the order of their rows."""
        return [str(path) for path in sorted(Path(self.folder).glob("*.parquet"))]

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Task:
        return Task(**json.loads(text))


@dataclass(frozen=True, slots=True)
class Answer:
    """One iteration: `rows` in `seconds`, and `result`, which must be equal for all systems that do the same task."""

    seconds: float
    rows: int
    result: Mapping[str, float]
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Rows per second."""
        return self.rows / self.seconds

    @property
    def cpu_per_million(self) -> float:
        """Processor seconds per million rows."""
        return float(self.details["cpu_seconds"]) / self.rows * 1e6

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Answer:
        return Answer(**json.loads(text))


def check_results(name: str, results: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Check that all systems have the same result for task `name`, and describe it. Raises BenchmarkError otherwise."""
    if len(results) < 2:
        return []
    (first, expected), *others = results.items()
    for system, result in others:
        if result != expected:
            raise BenchmarkError(f"benchmark {name}: {system} gives {dict(result)}, {first} gives {dict(expected)}")
    figures = ", ".join(f"{what} {value:,.10g}" for what, value in expected.items())
    return [f"{name}: {', '.join(results)} have the same result: {figures}"]
