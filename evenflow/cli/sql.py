"""`evenflow sql`: a script of SQL, as a job."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..engine.errors import ConnectorError


def add_arguments(parser: argparse.ArgumentParser, _name: str) -> None:
    """Add the arguments."""
    parser.add_argument("script", type=Path, metavar="FILE", help="the script: CREATE TABLE, VIEW and FUNCTION, SET, INSERT INTO")
    parser.add_argument("--explain", action="store_true", help="print the plan, and run nothing")
    parser.add_argument("--name", metavar="NAME", help="the job's name (default: that of the file)")
    parser.add_argument("--parallelism", type=int, metavar="N", help="the workers of each operator (default: 1)")
    parser.add_argument("--runtime", choices=("ray", "local"), default="ray", help="where it runs (default: %(default)s)")


def run(arguments: argparse.Namespace) -> int:
    """Run the script, and wait for the end of its job. Raises FlowError for what isn't supported."""
    from ..sql_translation.script import flow_of

    try:
        text = arguments.script.read_text("utf-8")
    except OSError as error:
        raise ConnectorError(f"{arguments.script} can't be read: {error}") from error
    sys.path.insert(0, str(arguments.script.resolve().parent))  # for CREATE FUNCTION
    flow = flow_of(text, arguments.name or arguments.script.stem)
    if arguments.explain:
        print(flow.explain(arguments.parallelism))  # noqa: T201 -- the command's output
        return 0
    flow.run(runtime=arguments.runtime, parallelism=arguments.parallelism).wait()
    return 0
