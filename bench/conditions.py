"""Assembles a run's record, and writes results."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from . import machine
from .record import Case, Run, Verdict
from .report import markdown

RESULTS = Path(__file__).parent / "results"


def record(
    benchmark: str,
    arguments: Mapping[str, Any],
    cases: Sequence[Case],
    verdicts: Sequence[Verdict] = (),
    *,
    checks: Sequence[str] = (),
    not_measured: Sequence[str] = (),
    series: Mapping[str, Any] | None = None,
) -> Run:
    """The record of a run that ends now, on this machine."""
    busy = [float(d["busy_before"]) for case in cases for d in case.details if "busy_before" in d]
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Run(
        benchmark, now, machine.describe(), machine.versions(), machine.commit(), dict(arguments), tuple(cases), tuple(verdicts),
        tuple(checks), tuple(not_measured), dict(series or {}), max(busy, default=0.0),
    )  # fmt: skip


def save(run: Run, results: Path) -> Path:
    """Write the JSON and the Markdown; returns the path of the JSON."""
    results.mkdir(parents=True, exist_ok=True)
    (results / ".gitignore").write_text("*\n")
    path = results / f"{run.benchmark}-{run.started.replace(':', '').replace('+0000', 'Z')}.json"
    path.write_text(run.to_json())
    path.with_suffix(".md").write_text(markdown(run))
    return path


def scratch(name: str) -> str:
    """A folder for temporary output of a benchmark."""
    return tempfile.mkdtemp(prefix=f"evenflow-bench-{name}-")
