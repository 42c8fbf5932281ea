"""Reports of upgrades for tests of what shows them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evenflow.engine.protocol.ids import CodeVersion
from evenflow.scheduler.policies.canary import StageComparison, VersionFigures
from evenflow.scheduler.protocol.reports import UpgradeReport, UpgradeState
from evenflow.scheduler.protocol.upgrade_progress import UpgradeProgress

COMPARED = StageComparison(
    "price",
    VersionFigures(rows=9_500, rows_out=950, errors=0, seconds=0.095, state_bytes=2_000, windows=10),
    VersionFigures(rows=500, rows_out=100, errors=3, seconds=0.01, state_bytes=64, windows=10),
)
WATCHED = UpgradeProgress(0, CodeVersion(2), ("price", "total"), UpgradeState.WATCHING, watched=35.2, watch=120.0)
LINE = "upgrade 0 to version 2 of `price`, `total`: watching the new code, 35 s of 120 s"
PROBLEM = "operator `price`: the new code refused 3 of 500 records, the old code 0 of 9500"


def upgrade_report(**changes: Any) -> UpgradeReport:
    """Return the report of an upgrade whose new code is being watched, with these changes."""
    watched = UpgradeReport(
        number=0, state=UpgradeState.WATCHING, reason="by hand", began_at=100.0, version=2, operators=("price", "total"), canary=0.05,
        keys_moved=12, state_bytes=340, compared=(COMPARED,),
    )  # fmt: skip
    return replace(watched, **changes)


def rolled_back(**changes: Any) -> UpgradeReport:
    """Return the report of an upgrade that was rolled back after 40 s, with these changes."""
    return upgrade_report(**{"state": UpgradeState.ROLLED_BACK, "seconds": 40.0, "problem": PROBLEM, **changes})
