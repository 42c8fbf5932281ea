"""The decisions of a job as lines of text: who decided what and why, what was expected, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.text import Text

from .reports import clock
from .terminal import lines

_ANSWERS = {"yes": "", "no": "(no) ", "failed": "(failed) "}


def decision_lines(entries: Sequence[Mapping[str, Any]], most: int) -> Text:
    """The newest `most` entries of the page's timeline, the oldest first; those that changed something go before those that didn't."""
    changes = [entry for entry in entries if entry["answer"] != "no"][-most:]
    looks = [entry for entry in entries if entry["answer"] == "no"]
    shown = [*looks[-(most - len(changes)) :], *changes] if len(changes) < most else changes
    return lines(line for entry in sorted(shown, key=lambda entry: entry["begin"]) for line in _lines(entry))


def _lines(entry: Mapping[str, Any]) -> Iterator[str]:
    whose = f"{entry['who']}, {entry['stage']}" if entry["stage"] else entry["who"]
    yield f"{clock(entry['begin'])} {whose}: {_ANSWERS[entry['answer']]}{entry['what']}"
    yield f"         {entry['reason']}"
    came = [f"expected {entry['expected']}"] if entry["expected"] else []
    came += [f"came {entry['came']}"] if entry["came"] else []
    if came:
        yield f"         {'; '.join(came)}"
