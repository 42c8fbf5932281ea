"""Arguments of several commands, and lists of names that are imported only when a command line needs them.

>>> parser = argparse.ArgumentParser(prog="evenflow")
>>> _ = parser.add_argument("mode", choices=Names("scheduler.policies.controller:MODES"))
>>> parser.parse_args(["advise"]).mode
'advise'
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator
from functools import cached_property


class Names:
    """The names in an iterable of evenflow, `module:variable`, and those in `also`, for an argument's `choices`.

    The module is imported when a name is checked or help is shown, so that other command lines don't wait for it.
    """

    def __init__(self, home: str, *also: str) -> None:
        self._module, _, self._variable = home.partition(":")
        self._also = also

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    @cached_property
    def _names(self) -> tuple[str, ...]:
        package = __name__.partition(".")[0]
        return (*getattr(importlib.import_module(f"{package}.{self._module}"), self._variable), *self._also)


def add_job(parser: argparse.ArgumentParser) -> None:
    """Add the job's name."""
    parser.add_argument("job", metavar="JOB", help="the job's name: that of its dataflow")


def add_waiting(parser: argparse.ArgumentParser, timeout: str) -> None:
    """Add the migration strategy and the timeout."""
    parser.add_argument("--strategy", metavar="NAME", choices=LIVE, help="how keys move: %(choices)s (default: the job's)")
    parser.add_argument("--timeout", default=timeout, help="how long to wait until it is done (default: %(default)s)")


LIVE = Names("scheduler.configs.job:LIVE")
