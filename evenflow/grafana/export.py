"""Writes a folder with dashboards for Grafana, alert rules for Prometheus, and its configuration that finds the running jobs.

`targets.json` has the format of Prometheus's `file_sd_configs`; Prometheus reads it again whenever it changes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..actors.job.target_file import target
from ..engine.errors import ConnectorError

HERE = Path(__file__).parent


def targets(jobs: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the jobs, with the addresses of their metrics, in the format of `file_sd_configs`.

    >>> targets({"clicks": "http://127.0.0.1:9400/metrics"})
    [{'targets': ['127.0.0.1:9400'], 'labels': {'job': 'clicks', 'evenflow_job': 'clicks'}}]
    """
    return [target(name, url) for name, url in sorted(jobs.items())]


def write(folder: Path, jobs: Mapping[str, str] | None) -> list[Path]:
    """Write the files, and the targets if jobs are given; return their paths. Raises ConnectorError if the folder can't be written."""
    shipped = [*sorted(HERE.glob("dashboards/*.json")), HERE / "alerts.yml", HERE / "prometheus.yml"]
    texts = {path.relative_to(HERE): path.read_text(encoding="utf-8") for path in shipped}
    if jobs is not None:
        texts[Path("targets.json")] = json.dumps(targets(jobs), indent=1) + "\n"
    try:
        for name, text in texts.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            whole = folder / f"{name}.new"  # Prometheus may read the file at any time: it sees a complete one
            whole.write_text(text, encoding="utf-8")
            whole.replace(folder / name)
    except OSError as error:
        raise ConnectorError(f"the dashboards can't be written to {folder}: {error}") from error
    return [folder / name for name in texts]
