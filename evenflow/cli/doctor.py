"""`evenflow doctor`: check this machine for the requirements of jobs, and say how to meet them."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser, _name: str) -> None:
    """Add the optional checks."""
    parser.add_argument("--ray", action="store_true", help="also start a Ray cluster on this machine, which takes some seconds")
    parser.add_argument(
        "--folder", type=Path, action="append", default=[], metavar="DIR", help="also check a folder for checkpoints; may be given again"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the findings; return exit code 1 if jobs can't run."""
    from ..doctor.probes import findings
    from ..terminal.console import DataTable, console

    found = list(findings(arguments.folder, start_ray=arguments.ray))
    table = DataTable("", "", "found")
    for finding in found:
        table.row(finding.state, finding.what, finding.found)
    terminal = console()
    terminal.print(table)
    for finding in found:
        if finding.todo:
            terminal.print(f"{finding.what}: {finding.todo}", soft_wrap=True)
    return int(any(finding.state == "missing" for finding in found))
