"""The folder that `evenflow grafana` writes: dashboards, how Grafana and Prometheus find them and the jobs.

`targets.json` is in the format of Prometheus's `file_sd_configs`, which reads it again whenever it changes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..engine.errors import ConnectorError
from .dashboard import dashboards

PROMETHEUS = """\
scrape_configs:
  - job_name: evenflow
    honor_labels: true  # `job` is the job's own name
    scrape_interval: 5s
    file_sd_configs:
      - files: ["targets.json"]  # `evenflow grafana --output . --targets` writes it anew
        refresh_interval: 30s
"""


def targets(jobs: Mapping[str, str]) -> list[dict[str, Any]]:
    """The jobs, with the addresses of their metrics, as `file_sd_configs` takes them.

    >>> targets({"clicks": "http://127.0.0.1:9400/metrics"})
    [{'targets': ['127.0.0.1:9400'], 'labels': {'evenflow_job': 'clicks'}}]
    """
    return [{"targets": [urlsplit(url).netloc], "labels": {"evenflow_job": name}} for name, url in sorted(jobs.items())]


def write(folder: Path, jobs: Mapping[str, str] | None) -> list[Path]:
    """Write the files, and the targets if jobs are given. Raises ConnectorError if that can't be."""
    files = {Path("dashboards", name): board for name, board in dashboards().items()}
    texts = {name: json.dumps(board, indent=1) + "\n" for name, board in files.items()}
    texts[Path("prometheus.yml")] = PROMETHEUS
    if jobs is not None:
        texts[Path("targets.json")] = json.dumps(targets(jobs), indent=1) + "\n"
    try:
        for name, text in texts.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            whole = folder / f"{name}.new"  # Prometheus may read meanwhile: it sees a file whole
            whole.write_text(text, encoding="utf-8")
            whole.replace(folder / name)
    except OSError as error:
        raise ConnectorError(f"the dashboards can't be written to {folder}: {error}") from error
    return [folder / name for name in texts]
