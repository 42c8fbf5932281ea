"""`evenflow grafana --output DIR`: write dashboards for Grafana, and alert rules and a configuration for Prometheus."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser, _name: str) -> None:
    """Add the folder, and the option to look up the running jobs."""
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="the folder to write; it is created if it doesn't exist")
    parser.add_argument("--targets", action="store_true", help="also list the running jobs in targets.json, for Prometheus")


def run(arguments: argparse.Namespace) -> int:
    """Write the files. Raises ClusterError without a cluster to search, ConnectorError if the folder can't be written."""
    from ..grafana.export import write
    from ..terminal.console import console

    for path in write(arguments.output, metrics_addresses() if arguments.targets else None):
        console().print(f"wrote {path}", soft_wrap=True)
    return 0


def metrics_addresses() -> dict[str, str]:
    """Return the address of each running job's metrics."""
    from .. import connect
    from ..actors.cluster import running_jobs
    from ..engine.errors import JobError

    found: dict[str, str] = {}
    for name in running_jobs():
        try:
            url = connect(name).metrics_url
        except JobError:  # it has just ended
            continue
        if url is not None:
            found[name] = url
    return found
