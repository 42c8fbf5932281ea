"""Scenario files: commands, each followed by a line of dashes and its output; lines between them are comments."""

from __future__ import annotations

from typing import Protocol

LINE = "----"


class Scenario(Protocol):
    """Carries out commands."""

    def run(self, command: str) -> str:
        """Return the output of a command."""


def replayed(text: str, scenario: Scenario) -> str:
    """Return the file with the outputs that its commands have now."""
    lines: list[str] = []
    keeping = True
    for line in text.splitlines():
        if line == LINE:
            lines += [LINE, scenario.run(lines[-1])]
            keeping = False
        elif not line:
            keeping = True
        if keeping:
            lines.append(line)
    return "\n".join(lines).rstrip() + "\n"
