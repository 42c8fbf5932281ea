"""A benchmark's declaration: its name, the arguments of its command, and the function that measures.

>>> from .record import Case
>>> rates = Argument("--rates", numbers, [1_000, 2_000], "rows per second")
>>> echo = Benchmark("echo", "repeats the rates", (rates,), lambda given, say: Findings([Case("rate", "", "higher", tuple(given.rates))]))
>>> echo.run(echo.parse(["--rates", "5,7"]), print).cases[0].values
(5, 7)
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from .conditions import cache_folder, record
from .record import Findings, Run

Say: TypeAlias = Callable[[str], object]
"""Takes a line of progress."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An option of a benchmark's command: `kind` parses its text. `name`: its attribute, by default the flag's own word."""

    flag: str
    kind: Callable[[str], Any]
    default: Any
    help: str
    name: str = ""

    @property
    def attribute(self) -> str:
        return self.name or self.flag.lstrip("-").replace("-", "_")

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        shown = ",".join(map(str, self.default)) if isinstance(self.default, (list, tuple)) else self.default
        default = "" if self.default is None else f" (default: {shown})"
        parser.add_argument(self.flag, dest=self.attribute, type=self.kind, default=self.default, help=f"{self.help}{default}")


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A named measurement. `run` gets the parsed arguments and returns what it found; `draw` draws a finished run into a figure."""

    name: str
    help: str
    arguments: tuple[Argument, ...]
    run: Callable[[argparse.Namespace, Say], Findings]
    not_measured: tuple[str, ...] = ()
    draw: Callable[[Run, Any], None] | None = None

    def add_to(self, parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
        """Add the arguments to a parser, and return it."""
        for argument in self.arguments:
            argument.add_to(parser)
        return parser

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """Parse the words of a command line. Ends the process with code 2 if they are wrong."""
        return self.add_to(argparse.ArgumentParser(prog=self.name)).parse_args(words)

    def measure(self, given: argparse.Namespace, say: Say) -> Run:
        """Run the benchmark and record the result with its conditions."""
        arguments = {argument.attribute: getattr(given, argument.attribute) for argument in self.arguments}
        return record(self.name, arguments, self.run(given, say), self.not_measured)


FOLDER = Argument("--folder", Path, cache_folder(), "the folder of the data")


def repeat(default: int, what: str = "iterations of each") -> Argument:
    """Return the argument `--repeat`."""
    return Argument("--repeat", int, default, what)


def some_of(known: Iterable[str]) -> Callable[[str], list[str]]:
    """Return a parser of names separated by commas, which refuses unknown ones.

    >>> some_of(["t1", "t2"])("t2,t1")
    ['t2', 't1']
    """
    names = list(known)
    return lambda text: [_checked(word, names) for word in text.split(",")]


def one_of(known: Iterable[str]) -> Callable[[str], str]:
    """Return a parser of one of these names."""
    names = list(known)
    return lambda text: _checked(text, names)


def numbers(text: str) -> list[int]:
    """Parse whole numbers separated by commas."""
    return [int(word) for word in text.split(",") if word]


def decimals(text: str) -> list[float]:
    """Parse numbers separated by commas."""
    return [float(word) for word in text.split(",") if word]


def _checked(name: str, known: Sequence[str]) -> str:
    if name not in known:
        raise argparse.ArgumentTypeError(f"{name!r} is unknown; choose from {', '.join(known)}")
    return name
