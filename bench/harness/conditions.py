"""Assembles the record of a run, and writes results."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from . import machine
from .record import Findings, Run
from .report import markdown

RESULTS = Path(__file__).parents[1] / "results"


def cache_folder() -> Path:
    """Return the default folder for the data of benchmarks."""
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "evenflow"


def record(benchmark: str, arguments: Mapping[str, Any], found: Findings, not_measured: Sequence[str] = ()) -> Run:
    """Return the record of a run that ends now, on this machine."""
    busy = [float(d["busy_before"]) for case in found.cases for d in case.details if "busy_before" in d]
    given = {name: str(value) if isinstance(value, Path) else value for name, value in arguments.items()}
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Run(
        benchmark, now, machine.describe(), machine.versions(), machine.commit(), {**given, **found.facts}, tuple(found.cases),
        tuple(found.verdicts), tuple(found.checks), tuple(not_measured), dict(found.series), max(busy, default=0.0),
    )  # fmt: skip


def save(run: Run, results: Path) -> Path:
    """Write the run as JSON and Markdown; returns the path of the JSON."""
    results.mkdir(parents=True, exist_ok=True)
    (results / ".gitignore").write_text("*\n")
    path = results / f"{run.benchmark}-{run.started.replace(':', '').replace('+0000', 'Z')}.json"
    path.write_text(run.to_json())
    path.with_suffix(".md").write_text(markdown(run))
    return path


@contextmanager
def scratch(name: str) -> Iterator[Path]:
    """Make a folder for temporary output of a benchmark, and remove it at the end of the block."""
    with tempfile.TemporaryDirectory(prefix=f"evenflow-bench-{name}-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)
