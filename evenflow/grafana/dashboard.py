"""Dashboards as Grafana imports them: its JSON, made of `panels.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .panels import CLUSTER_ROWS, JOB_ROWS, Panel, Row

WIDTH, HEIGHT, COLUMNS = 8, 8, 24
"""Of a panel and of the whole, in the cells of Grafana's grid."""

SCHEMA = 39
"""The version of Grafana's format (10.x); newer Grafanas convert it."""

SOURCE = {"type": "prometheus", "uid": "${source}"}


def dashboards() -> dict[str, dict[str, Any]]:
    """All dashboards, by the name of their file."""
    return {
        "evenflow-job.json": dashboard("evenflow-job", "evenflow: a job", JOB_ROWS),
        "evenflow-cluster.json": dashboard("evenflow-cluster", "evenflow: all jobs", CLUSTER_ROWS, all_jobs=True),
    }


def dashboard(uid: str, title: str, rows: Sequence[Row], *, all_jobs: bool = False) -> dict[str, Any]:
    """A dashboard of these rows. `all_jobs`: it begins with all of them, and not with one."""
    job = {
        "name": "job", "label": "job", "type": "query", "datasource": SOURCE, "refresh": 2, "sort": 1, "multi": all_jobs,
        "includeAll": True,
        "query": {"query": "label_values(evenflow_rows_in_total, job)", "refId": "jobs"},
        "current": {"text": "All", "value": "$__all"} if all_jobs else {},
    }  # fmt: skip
    source = {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    return {
        "uid": uid, "title": title, "tags": ["evenflow"], "schemaVersion": SCHEMA, "refresh": "10s", "timezone": "browser",
        "time": {"from": "now-30m", "to": "now"}, "templating": {"list": [source, job]}, "panels": list(_panels(rows)),
    }  # fmt: skip


def _panels(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    number, y = 0, 0
    for row in rows:
        number += 1
        yield {
            "id": number,
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "panels": [],
            "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1},
        }
        y += 1
        for place, panel in enumerate(row.panels):
            number += 1
            across, down = place % (COLUMNS // WIDTH), place // (COLUMNS // WIDTH)
            yield _panel(number, panel, across * WIDTH, y + down * HEIGHT)
        y += -(-len(row.panels) // (COLUMNS // WIDTH)) * HEIGHT


def _panel(number: int, panel: Panel, x: int, y: int) -> dict[str, Any]:
    targets = [
        {"refId": chr(ord("A") + place), "datasource": SOURCE, "expr": query.expression, "legendFormat": query.legend}
        for place, query in enumerate(panel.queries)
    ]
    return {
        "id": number, "type": "timeseries", "title": panel.title, "description": panel.about, "datasource": SOURCE, "targets": targets,
        "gridPos": {"x": x, "y": y, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0, "custom": {"showPoints": "never"}}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
    }  # fmt: skip
