"""`evenflow sql`: a script of SQL, as a job."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..engine.errors import ConnectorError, FlowError


def add_arguments(parser: argparse.ArgumentParser, _name: str) -> None:
    """Add the arguments."""
    what = "the script: CREATE TABLE, VIEW and FUNCTION, SET, INSERT INTO; several files are one script"
    parser.add_argument("scripts", type=Path, nargs="+", metavar="FILE", help=what)
    parser.add_argument("--explain", action="store_true", help="print the plan, and run nothing")
    parser.add_argument(
        "--function",
        action="append",
        default=[],
        metavar="NAME=MODULE.FUNCTION",
        help="a Python function in place of that of the script's CREATE FUNCTION NAME; may be repeated",
    )
    parser.add_argument("--name", metavar="NAME", help="the job's name (default: that of the last file)")
    parser.add_argument("--parallelism", type=int, metavar="N", help="the workers of each operator (default: 1)")
    parser.add_argument("--runtime", choices=("ray", "local"), default="ray", help="where it runs (default: %(default)s)")


def run(arguments: argparse.Namespace) -> int:
    """Run the script, and wait for the end of its job. Raises FlowError for what isn't supported."""
    from ..sql_translation.script import function_at, script_of

    texts = []
    for path in arguments.scripts:
        try:
            texts.append(path.read_text("utf-8"))
        except OSError as error:
            raise ConnectorError(f"{path} can't be read: {error}") from error
    last = arguments.scripts[-1]
    sys.path.insert(0, str(last.resolve().parent))  # for CREATE FUNCTION
    functions = {}
    for given in arguments.function:
        name, _, path = given.partition("=")
        try:
            functions[name] = function_at(path)
        except (ImportError, AttributeError, ValueError) as error:
            raise FlowError(f"--function {given}: expected NAME=MODULE.FUNCTION of a Python function: {error}") from error
    script = script_of(";\n".join(texts), arguments.name or last.stem, functions)
    for note in script.notes:
        print(note, file=sys.stderr)  # noqa: T201 -- the command's output
    flow = script.flow
    if arguments.explain:
        print(flow.explain(arguments.parallelism))  # noqa: T201 -- the command's output
        return 0
    flow.run(runtime=arguments.runtime, parallelism=arguments.parallelism).wait()
    return 0
