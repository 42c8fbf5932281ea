"""Evaluation of alert rules over recorded series, by Prometheus's own promtool."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from evenflow.grafana.export import HERE

RULES = HERE / "alerts.yml"
FETCHED = Path(__file__).parents[2] / "build" / "promtool" / "promtool"
"""The path to which `make promtool` extracts it."""


def promtool() -> str:
    """Return the path of promtool; the test fails, and says what to do, if there is none."""
    found = os.environ.get("PROMTOOL") or shutil.which("promtool") or (str(FETCHED) if FETCHED.is_file() else None)
    if found is None:
        pytest.fail("no promtool: `make promtool` fetches it on Debian and Ubuntu; else install Prometheus, or set PROMTOOL to its path")
    return found


def run(folder: Path, *tests: Mapping[str, Any]) -> str:
    """Run these tests of the alert rules; return promtool's complaints, empty if they pass."""
    file = folder / "alerts.test.json"  # JSON is YAML
    file.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "30s", "tests": tests}))
    done = subprocess.run([promtool(), "test", "rules", str(file)], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def complaints(
    folder: Path, series: Mapping[str, str], alerts: Iterable[tuple[str, str]], at: str, among: str = "", interval: str = "1m"
) -> str:
    """Return promtool's complaints unless exactly these alerts, each with its job, fire at that time.

    `series` in promtool's notation, a value per interval. `among`: a selector of the alerts to look at.
    """
    given = [{"series": name, "values": values} for name, values in series.items()]
    found = [{"labels": f'{{alertname="{name}", job="{job}"}}', "value": 1} for name, job in sorted(set(alerts))]
    expected = {"expr": f'group by (alertname, job) (ALERTS{{alertstate="firing"{among}}})', "eval_time": at, "exp_samples": found}
    return run(folder, {"interval": interval, "input_series": given, "promql_expr_test": [expected]})


class Recorded:
    """Series that were recorded by scrapes, one per round, of several targets. `labels`: those that Prometheus adds to a target's."""

    def __init__(self) -> None:
        self.rounds = 0
        self._series: dict[str, list[float | None]] = {}

    def add(self, scrapes: Mapping[str, str | None], slower: float) -> None:
        """Add a round: the text that each job's target answered, None if it did not. Durations that are metrics count `slower`
        times, as the time between two rounds does.
        """
        for job, text in scrapes.items():
            self._note(f'up{{evenflow_job="{job}",job="{job}"}}', float(text is not None))
            for family in text_string_to_metric_families(text or ""):
                for name, labels, value, *_ in family.samples:
                    inside = ",".join(f'{label}="{labels[label]}"' for label in sorted(labels))
                    lasts = family.type == "gauge" and name.endswith(LASTING)
                    self._note(f"{name}{{{inside}}}", value * slower if lasts else value)
        self.rounds += 1

    def _note(self, name: str, value: float) -> None:
        values = self._series.setdefault(name, [])
        values += [None] * (self.rounds - len(values)) + [value]

    def series(self) -> dict[str, str]:
        """Return the series in promtool's notation; a missing sample is stale, as it would be in Prometheus."""
        return {name: _notation(values, self.rounds) for name, values in self._series.items()}


LASTING = ("_age_seconds", "_interval_seconds", "_lag_seconds", "_progress_seconds")
"""The ends of the names of gauges that are durations."""


def _notation(values: Sequence[float | None], rounds: int) -> str:
    whole = [*values, *[None] * (rounds - len(values))]
    return " ".join(
        f"{value:.17g}" if value is not None else "stale" if at and whole[at - 1] is not None else "_" for at, value in enumerate(whole)
    )
