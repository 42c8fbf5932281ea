"""The command `read`: the value of a key in the state of a running job, as JSON."""

from __future__ import annotations

import argparse
import json

from ..building.requests import parse_key
from .arguments import add_job


def add_arguments(parser: argparse.ArgumentParser, _name: str) -> None:
    """Add the job, the operator and the key."""
    add_job(parser)
    parser.add_argument("operator", metavar="OPERATOR", help="an aggregate without windows, a stateful_map or a process of the job")
    help_ = "a number or a text; in JSON for a text of digits ('\"17\"') and for a key of several columns ('[\"JFK\", 7]')"
    parser.add_argument("key", type=parse_key, metavar="KEY", help=help_)
    parser.add_argument("--timeout", default="30s", help="how long to wait for the worker that has the key (default: %(default)s)")


def run(arguments: argparse.Namespace) -> int:
    """Print the value, `null` for a key without state. Raises RequestError for a key that can't be read, JobNotRunningError."""
    from .. import connect

    value = connect(arguments.job).read(arguments.operator, arguments.key, timeout=arguments.timeout)
    print(json.dumps(value, default=str, ensure_ascii=False))  # noqa: T201 -- JSON for another program: rich would wrap it
    return 0
