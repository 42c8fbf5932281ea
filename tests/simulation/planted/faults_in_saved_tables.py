"""Faults in tables that are read from checkpoints. Each breaks a core in a few lines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evenflow import reads
from evenflow.scheduler.job import request_handler
from evenflow.scheduler.parts.saved_tables import saved_table

Patch = pytest.MonkeyPatch


def changes_do_not_replace_older_rows(patch: Patch) -> None:
    patch.setattr(reads, "resolved", lambda files: (chunk for chunks in files for chunk in chunks if chunk.num_columns > 1))


def workers_parts_are_of_two_checkpoints(patch: Patch) -> None:
    """Let the first worker's part be that of the checkpoint that was the newest at the last read."""
    before: dict[str, Any] = {}

    def torn(job: Any, operator: str) -> Any:
        found = saved_table(job, operator)
        if found is None:
            return None
        older, before[operator] = before.get(operator, found), found
        return replace(found, entries=(older.entries[0], *found.entries[1:]))

    patch.setattr(request_handler, "saved_table", torn)


def newest_file_of_a_chain_is_left_out(patch: Patch) -> None:
    patch.setattr(reads, "reversed", lambda files: list(reversed(files))[1:], raising=False)
