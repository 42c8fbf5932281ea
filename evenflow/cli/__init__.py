"""The command line: `evenflow COMMAND`, also `python -m evenflow`."""

from __future__ import annotations

from .command_line import main

__all__ = ["main"]
