"""Shows how each part of a check ended, which tests failed and why, and how to run each of them alone.

The summary is the end of a check's output, and has at most 24 lines, so that it is complete even if only the end of the output is
kept.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

LINES, WIDTH, DETAILS = 24, 240, 300
PYTHON = Path(sys.prefix, "bin", "python")
TEST = re.compile(r"(?:FAILED|ERROR) (?P<test>[^\s\[]+(?:\[.*?\])?)(?: - (?P<why>.*))?$")
"""A failed test in pytest's short summary."""
STYLE = re.compile(r"\S+:\d+(:\d+)?: error: |--> \S+:\d+:\d+|Would reformat: |[A-Z]+\d+ .*")
"""A line that reports a finding of mypy or ruff."""
HANGING = re.compile(r"Timeout \(\d+:\d\d:\d\d\)!$")
"""The end of the line of a file whose test hung in C code, which ended the process."""
TOTALS = re.compile(r"=+ (.*\d (passed|failed|error|skipped|deselected).*) =+")
SUMMARY, FAILURES = re.compile(r"^=+ short test summary info =+$", re.MULTILINE), re.compile(r"^=+ (FAILURES|ERRORS) =+$", re.MULTILINE)


def summary(check: str, parts: dict[str, tuple[int, str]], seconds: float) -> list[str]:
    """Return lines about each part's exit code and log; the failures of all parts come last."""
    heads = [f"{name}: {'passed' if code == 0 else f'FAILED (exit code {code})'}{totals(log)}" for name, (code, log) in parts.items()]
    failed = {name: failures(log) for name, (code, log) in parts.items() if code != 0}
    took = f"{seconds:.0f} s"
    if not failed:
        return [f"---- {check}: all passed in {took}", *heads]
    room = (LINES - 1 - len(heads)) // len(failed)
    shown = [line for name, lines in failed.items() for line in shortened(name, lines, room)]
    return [f"---- {check}: failed after {took}: " + ", ".join(failed), *heads, *shown]


def totals(log: str) -> str:
    """Return pytest's last line, such as `3 passed in 0.2s`."""
    found = TOTALS.findall(log)
    return f", {found[-1][0]}" if found else ""


def failures(log: str) -> list[str]:
    """Return the failures in a log, each test with the command to run it alone; or the last lines if it names none."""
    lines = [line.strip() for line in SUMMARY.split(log)[-1].splitlines() if line.strip()]
    tests = [line for found in map(TEST.match, lines) if found for line in (found[0], f"  alone: {alone(found['test'])}")]
    return tests or [line for line in lines if STYLE.match(line) or HANGING.search(line)] or lines[-5:]


def alone(test: str) -> str:
    """Return the command that runs a test."""
    python = PYTHON.relative_to(Path.cwd()) if PYTHON.is_relative_to(Path.cwd()) else PYTHON
    return f"{python} -m pytest {shlex.quote(test)}"


def shortened(name: str, lines: list[str], room: int) -> list[str]:
    """Return at most `room` lines, each preceded by the part's name."""
    hidden = len(lines) - room
    if hidden > 0:
        lines = [*lines[: room - 1], f"... and {hidden + 1} more in the log"]
    return [f"{name}: {line}"[:WIDTH] for line in lines]


def details(parts: dict[str, tuple[int, str]]) -> list[str]:
    """Return what the failed parts wrote about their failures, for readers who see only a check's output."""
    lines = []
    for name, (code, log) in parts.items():
        if code != 0:
            found = FAILURES.search(log)
            told = log[found.start() if found else 0 :].splitlines()
            lines += [f"---- {name}:", *told[-DETAILS:]]
    return lines
