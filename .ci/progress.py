"""Shows the progress of a check's parts, read from their logs: on a terminal in a line that is overwritten."""

from __future__ import annotations

import re
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

ON_TERMINAL, IN_LOG = 1.0, 30.0
"""Seconds between two lines."""

COLLECTED = re.compile(r"^collected (?P<all>\d+) items?(?: / \d+ deselected)?(?: / (?P<selected>\d+) selected)?", re.MULTILINE)
OUTCOMES = re.compile(r"^(?:tests/\S+\.py )?([.FEsxX]+)(?= *(?:\[ *\d+%\])?$)", re.MULTILINE)
"""A line of pytest's output: a letter for each test of a file."""


@dataclass(frozen=True, slots=True)
class Tests:
    """The progress of a part."""

    done: int = 0
    failed: int = 0
    total: int = 0


def counted(log: str) -> Tests:
    """Count the tests in pytest's output up to the failures, which may contain any text."""
    log = re.split(r"^=+ (?:FAILURES|ERRORS) =+$", log, maxsplit=1, flags=re.MULTILINE)[0]
    found = COLLECTED.search(log)
    if found is None:
        return Tests()
    letters = "".join(OUTCOMES.findall(log))
    return Tests(len(letters), letters.count("F") + letters.count("E"), int(found["selected"] or found["all"]))


class Progress:
    """The parts of a check, each with its log, from its beginning."""

    def __init__(self, name: str, logs: dict[str, Path], out: TextIO = sys.stdout) -> None:
        self._name, self._logs, self._out = name, logs, out
        self._began, self._shown, self._ended = time.monotonic(), 0.0, dict[str, int]()
        self._terminal = out.isatty()

    def elapsed(self) -> float:
        return time.monotonic() - self._began

    def end(self, name: str, code: int, processor_seconds: float) -> None:
        """Print that a part has ended, and its processor time."""
        self.clear()
        self._ended[name] = code
        tests = self._tests(name)
        counts = f"{tests.done} tests, " if tests.total else ""
        said = f"{name} {'passed' if code == 0 else 'FAILED'}: {counts}{processor_seconds:.0f} s of a processor"
        print(f"[{self.elapsed():4.0f} s] {said}", file=self._out, flush=True)

    def show(self) -> None:
        """Print the progress of all parts, if it is time."""
        if self.elapsed() - self._shown < (ON_TERMINAL if self._terminal else IN_LOG):
            return
        self._shown = self.elapsed()
        if self._terminal:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r{self.line()[:width]:<{width}}", end="", file=self._out, flush=True)
        else:
            print(self.line(), file=self._out, flush=True)

    def clear(self) -> None:
        """Remove the line from the terminal."""
        if self._terminal:
            print(f"\r{'':<{shutil.get_terminal_size().columns - 1}}\r", end="", file=self._out, flush=True)

    def line(self) -> str:
        """Return a line such as `[ 61 s] make test: 812 of 4000 tests, 1 failed; clusters 9/26, unit 803/3974, style; waiting:
        connectors`.
        """
        tests = {name: self._tests(name) for name in self._logs}
        left = [name for name in self._logs if name not in self._ended]
        running = [self._part(name, tests[name]) for name in left if self._logs[name].exists()]
        waiting = [name for name in left if not self._logs[name].exists()]
        done, total, failed = (sum(getattr(each, what) for each in tests.values()) for what in ("done", "total", "failed"))
        line = f"[{self.elapsed():4.0f} s] {self._name}: {done} of {total} tests, {failed} failed; {', '.join(running)}"
        return f"{line}; waiting: {', '.join(waiting)}" if waiting else line

    def _part(self, name: str, tests: Tests) -> str:
        return f"{name} {tests.done}/{tests.total}" if tests.total else name

    def _tests(self, name: str) -> Tests:
        log = self._logs[name]
        return counted(log.read_text(encoding="utf-8", errors="replace")) if log.exists() else Tests()
