"""The command `checkpoints`: those of a running job, or those in a folder or an object store."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime


def add_arguments(parser: argparse.ArgumentParser, _name: str) -> None:
    """Add the job and the folder."""
    parser.add_argument("job", metavar="JOB", nargs="?", help="the job's name; with --dir only that job's")
    parser.add_argument("--dir", metavar="URL", help="list what is in this folder, that of CheckpointConfig(dir=...), without a cluster")


def run(arguments: argparse.Namespace) -> int:
    """Show the checkpoints."""
    if arguments.dir is not None:
        _show_saved(arguments.dir, arguments.job)
    elif arguments.job is None:
        arguments.usage_error("name a running JOB, or a folder with --dir URL")
    else:
        _show_running(arguments.job)
    return 0


def _show_running(job: str) -> None:
    from .. import connect
    from ..terminal.console import console
    from ..terminal.reports import checkpoints_table

    console().print(checkpoints_table(connect(job).checkpoints()))


def _show_saved(url: str, job: str | None) -> None:
    from ..saved_checkpoints import list_checkpoints, runs_of
    from ..terminal.console import DataTable, console

    out, right = console(), ("no.", "age", "keys", "bytes")
    table = DataTable("job", *right, "stream", "folder", right=right, title=f"checkpoints in {url}")
    for saved in list_checkpoints(url, job):
        age = f"{(datetime.now(UTC) - saved.created).total_seconds():,.0f} s"
        stream = "has ended" if saved.finished else "can be continued"
        table.row(saved.job, str(saved.number), age, f"{saved.keys:,}", f"{saved.size:,}", stream, saved.url)
    out.print(table)
    for name, what in runs_of(url, job).items():
        out.print(f"{name}: {what}", soft_wrap=True)
