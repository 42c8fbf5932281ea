"""The two messages between `run` and a system's process: the task, and the answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import duckdb

THRESHOLD = 3.0
"""A row is an alert if its value is above this multiple of the running mean of its key."""

WINDOW_MS = 1000


@dataclass(frozen=True, slots=True)
class Task:
    """`name`: t1, t1-strings, t2 or t2-columns. `folder` has the data, `output` is the system's own; `last_window` as in `Dataset`."""

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
    """One iteration: `rows` in `seconds`, and `result`, which must be equal among the systems that do the same task."""

    seconds: float
    rows: int
    result: Mapping[str, float]
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Rows per second."""
        return self.rows / self.seconds

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Answer:
        return Answer(**json.loads(text))


def result_of_windows(output: str, start: str, last_window: int) -> dict[str, float]:
    """What T1 wrote, up to the last window, which Spark never emits. `start`: SQL for the window's start in ms."""
    query = f"SELECT count(*), sum(n), sum(total), max(n) FROM read_parquet('{output}/*.parquet') WHERE {start} < {last_window}"  # noqa: S608 -- our own words
    return _named(("rows", "records", "total", "largest_count"), duckdb.execute(query).fetchone())


def result_of_alerts(output: str) -> dict[str, float]:
    """What T2 wrote."""
    query = f"SELECT count(*), sum(value), count(DISTINCT key) FROM read_parquet('{output}/*.parquet')"  # noqa: S608 -- our own words
    return _named(("alerts", "total", "keys"), duckdb.execute(query).fetchone())


def _named(names: tuple[str, ...], values: tuple[Any, ...] | None) -> dict[str, float]:
    return {name: float(value or 0) for name, value in zip(names, values or (0,) * len(names), strict=True)}
