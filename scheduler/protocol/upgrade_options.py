"""The way in which the code of a running job is exchanged."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

OnFailure = Literal["rollback", "continue"]


@dataclass(frozen=True, slots=True)
class UpgradeOptions:
    """`canary`: the share of each operator's load that gets the new code first, from 0 (no canary) to 1; `keys`: keys that get it first,
    instead. `watch`: seconds for which both versions run side by side.

    The new code is taken back if its workers refuse more than `max_errors` records beyond what the old code refuses, or need more than
    `max_slowdown` times as long for a record. `on_failure`: what a failure of the job means while the upgrade is under way. `strategy`:
    the migration strategy, None for the job's.
    """

    canary: float = 0.05
    keys: tuple[Hashable, ...] = ()
    watch: float = 120.0
    max_errors: int = 0
    max_slowdown: float = 2.0
    on_failure: OnFailure = "rollback"
    strategy: str | None = None
