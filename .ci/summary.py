"""Says how each part of `make test` ended and which tests failed.

The summary is the last that `make test` prints, and it is at most 24 lines long: so it is whole also where only the end of an output is
kept.
"""

from __future__ import annotations

import re

LINES, WIDTH = 24, 240
FAILURE = re.compile(r"(FAILED|ERROR) \S+|\S+:\d+(:\d+)?: error: |--> \S+:\d+:\d+|Would reformat: |[A-Z]+\d+ .*")
"""A failed test in pytest's short summary, and what mypy and ruff say of a line, a file or a rule."""
TOTALS = re.compile(r"=+ (.*\d (passed|failed|error|skipped).*) =+")


def summary(parts: dict[str, tuple[int, str]]) -> list[str]:
    """Lines about each part's exit code and log; the failures of all parts come last."""
    heads = [f"{name}: {'passed' if code == 0 else f'FAILED (exit code {code})'}{totals(log)}" for name, (code, log) in parts.items()]
    failed = {name: failures(log) for name, (code, log) in parts.items() if code != 0}
    if not failed:
        return ["---- summary: all passed", *heads]
    room = (LINES - 1 - len(heads)) // len(failed)
    shown = [line for name, lines in failed.items() for line in shortened(name, lines, room)]
    return ["---- summary: failed: " + ", ".join(failed), *heads, *shown]


def totals(log: str) -> str:
    """pytest's last line, such as `3 passed in 0.2s`."""
    found = TOTALS.findall(log)
    return f", {found[-1][0]}" if found else ""


def failures(log: str) -> list[str]:
    """The failures that a log names, or its last lines if it names none: a process that was killed says nothing in order."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return [line for line in lines if FAILURE.match(line)] or lines[-5:]


def shortened(name: str, lines: list[str], room: int) -> list[str]:
    """At most `room` lines, each with the part's name in front."""
    left_out = len(lines) - room
    if left_out > 0:
        lines = [*lines[: room - 1], f"... and {left_out + 1} more in the log"]
    return [f"{name}: {line}"[:WIDTH] for line in lines]
