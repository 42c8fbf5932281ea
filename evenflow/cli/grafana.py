"""`evenflow grafana --output DIR`: dashboards for Grafana, and a configuration with which Prometheus finds the jobs."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser, _name: str) -> None:
    """The folder, and whether the jobs that run are looked up."""
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="the folder to write; it is made if it isn't there")
    parser.add_argument("--targets", action="store_true", help="also list the jobs that run, in targets.json, for Prometheus")


def run(arguments: argparse.Namespace) -> int:
    """Write the files. Raises ClusterError without a cluster to look at, ConnectorError if the folder can't be written."""
    from ..drawing.terminal import console
    from ..grafana.files import write

    for path in write(arguments.output, jobs_that_tell() if arguments.targets else None):
        console().print(f"wrote {path}", soft_wrap=True)
    return 0


def jobs_that_tell() -> dict[str, str]:
    """The address of each job's metrics, of the jobs that run."""
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
