"""The upgrades of a job for its page: the one under way, and the newest that is over, with a comparison of both versions."""

from __future__ import annotations

from typing import Any

from ..scheduler.policies.canary import StageComparison, VersionFigures
from ..scheduler.protocol.reports import UpgradeReport, UpgradeState
from ..scheduler.protocol.upgrade_progress import UpgradeProgress
from ..scheduler.protocol.view import JobView


def upgrade_watched(view: JobView) -> UpgradeReport | None:
    """Return the upgrade whose new code is being watched, None without one."""
    progress = view.status.upgrade
    if progress is None or progress.state is not UpgradeState.WATCHING:
        return None
    return next((report for report in view.upgrades if report.number == progress.number), None)


def upgrades_of(view: JobView) -> list[dict[str, Any]]:
    """Describe the upgrade under way and the newest that is over as JSON objects, the newer first."""
    running = [report for report in view.upgrades if not report.over][-1:]
    over = [report for report in view.upgrades if report.over][-1:]
    return [_upgrade(report, view.status.upgrade) for report in (*running, *over)]


def _upgrade(report: UpgradeReport, progress: UpgradeProgress | None) -> dict[str, Any]:
    facts = {
        "number": report.number,
        "version": report.version,
        "operators": list(report.operators),
        "state": report.state.value,
        "over": report.over,
        "begin": report.began_at,
        "seconds": report.seconds,
        "why": report.why,
        "problem": report.problem,
        "canary": report.canary,
        "keys": report.keys_moved,
        "bytes": report.state_bytes,
        "details": "",
        "watched": None,
        "compared": list(map(_compared, report.compared)),
    }
    if report.over or progress is None or progress.number != report.number:
        return facts
    watched = None if progress.watched is None else min(1.0, progress.watched / max(progress.watch, 1e-9))
    return {**facts, "state": progress.state.value, "problem": progress.problem, "details": progress.details, "watched": watched}


def _compared(one: StageComparison) -> dict[str, Any]:
    return {"operator": one.operator, "old": _figures(one.old), "new": _figures(one.new)}


def _figures(figures: VersionFigures) -> dict[str, Any]:
    return {
        "rows": figures.rows,
        "errors": figures.errors,
        "selectivity": None if figures.selectivity is None else round(figures.selectivity, 3),
        "microseconds": None if figures.microseconds is None else round(figures.microseconds, 1),
        "bytes": figures.state_bytes,
    }
