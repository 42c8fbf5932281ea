"""The command `read`: the value of a key in the state of a running job, or the rows of all keys, as JSON."""

from __future__ import annotations

import argparse
from typing import Any

from ..building.requests import parse_key
from ..engine.errors import RequestError
from .arguments import add_job

ALL = object()
"""The key that stands for all keys: `null` is a key."""


def add_arguments(parser: argparse.ArgumentParser, _name: str) -> None:
    """Add the job, the operator, the key, and the options of a table."""
    add_job(parser)
    parser.add_argument("operator", metavar="OPERATOR", help="an aggregate without windows, a stateful_map or a process of the job")
    help_ = (
        "a number or a text; in JSON for a text of digits ('\"17\"') and for a key of several columns ('[\"JFK\", 7]'); "
        "without it, all keys as of the newest complete checkpoint, a line for each"
    )
    parser.add_argument("key", type=parse_key, metavar="KEY", nargs="?", default=ALL, help=help_)
    parser.add_argument("--fresh", action="store_true", help="take a checkpoint before all keys are read")
    parser.add_argument("--most", type=int, metavar="N", help="read no more than about N of all keys")
    parser.add_argument(
        "--timeout", default="30s", help="how long to wait for the worker that has the key, or for the checkpoint (default: %(default)s)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the value, `null` for a key without state, or the rows of all keys.

    Raises RequestError for what can't be read, JobNotRunningError.
    """
    from .. import connect

    job = connect(arguments.job)
    if arguments.key is not ALL:
        if arguments.fresh or arguments.most is not None:
            raise RequestError("--fresh and --most are for all keys: leave out KEY, or these")
        _print(job.read(arguments.operator, arguments.key, timeout=arguments.timeout))
        return 0
    table = job.table(arguments.operator, fresh=arguments.fresh, most=arguments.most, timeout=arguments.timeout)
    for batch in table.to_batches():
        for row in batch.to_pylist():
            _print(row)
    return 0


def _print(value: Any) -> None:
    from ..reads import as_json

    print(as_json(value))  # noqa: T201 -- JSON for another program: rich would wrap it
