"""The command that changes settings of a running job: reconfigure."""

from __future__ import annotations

import argparse
from typing import Any

from ..engine.errors import RequestError
from .arguments import add_job


def add_arguments(parser: argparse.ArgumentParser, _name: str) -> None:
    """Add one job and its new settings."""
    add_job(parser)
    named = "a setting by its group and name in ef.JobConfig, for example checkpoint.interval=5s; or linger=2ms, log_level=debug"
    parser.add_argument("settings", type=setting, nargs="+", metavar="NAME=VALUE", help=named)


def run(arguments: argparse.Namespace) -> int:
    """Change the settings, and show the changes. Raises JobNotRunningError if no such job runs, RequestError for other settings."""
    from .. import connect
    from ..reconfiguring import reconfigured
    from ..terminal.console import console
    from ..terminal.reports import settings_table

    changes = reconfigured(connect(arguments.job)._runtime, dict(arguments.settings))  # noqa: SLF001 -- Python changes whole groups
    console().print(settings_table(changes))
    return 0


def setting(text: str) -> tuple[str, Any]:
    """Parse a setting. Raises argparse.ArgumentTypeError for a text that is none."""
    from ..reconfiguring import parse_setting

    try:
        return parse_setting(text)
    except RequestError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
