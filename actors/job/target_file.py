"""A job's file for Prometheus's `file_sd_configs`: its name, the address of its metrics, and their labels.

The file says that a job should be running: it stays if the job fails or its processes are lost, so that an alert can say that the
target is down. It goes when the job has finished or was cancelled.

>>> target("clicks", "https://10.0.0.7:9400/metrics", "node-7")["labels"]
{'job': 'clicks', 'evenflow_job': 'clicks', 'host': 'node-7', '__scheme__': 'https'}
"""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


class TargetFile:
    """The file of one job in a folder."""

    def __init__(self, folder: str, job: str) -> None:
        self._job, self._path = job, Path(folder) / f"{job}.json"
        self._written = ""

    def write(self, url: str) -> None:
        """Write the present address. Prometheus sees the old file or the new one, never a part. Raises OSError."""
        text = json.dumps([target(self._job, url, socket.gethostname())], indent=1) + "\n"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        part = self._path.with_name(f".{self._path.name}.new")
        part.write_text(text, encoding="utf-8")
        part.replace(self._path)
        self._written = text

    def remove(self) -> None:
        """Remove the file, unless another coordinator of the job has written its own since. Raises OSError."""
        if self._written and self._path.is_file() and self._path.read_text(encoding="utf-8") == self._written:
            self._path.unlink()


def target(job: str, url: str, host: str | None = None) -> dict[str, Any]:
    """Return the target of a job. `evenflow_job` marks it for alerts about targets that are down."""
    parts = urlsplit(url)
    labels = {"job": job, "evenflow_job": job, **({} if host is None else {"host": host})}
    return {"targets": [parts.netloc], "labels": labels | ({} if parts.scheme == "http" else {"__scheme__": parts.scheme})}
