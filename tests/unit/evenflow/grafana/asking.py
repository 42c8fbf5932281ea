"""Finds the metrics and labels that the queries of dashboards need, and those that a scrape lacks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

METRIC = re.compile(r"\bevenflow_[a-z_]+")
SELECTOR = re.compile(r"(\bevenflow_[a-z_]+)\{([^}]*)\}")
GROUPING = re.compile(r"\bby \(([^)]*)\)")
LEGEND = re.compile(r"\{\{(\w+)\}\}")


def metrics_of(expression: str) -> set[str]:
    return set(METRIC.findall(expression))


def labels_of(expression: str, legend: str = "") -> set[str]:
    """Return the labels by which a query selects, groups and names its series."""
    selected = {part.split("=")[0].rstrip("!").strip() for _, inside in SELECTOR.findall(expression) for part in inside.split(",") if part}
    grouped = {label.strip() for inside in GROUPING.findall(expression) for label in inside.split(",")}
    return selected | grouped | set(LEGEND.findall(legend))


def missing(expression: str, legend: str, scraped: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the metrics and labels of the query that `scraped` (labels by name of the sample) lacks."""
    names = metrics_of(expression)
    absent = [name for name in names if name not in scraped]
    wanted = labels_of(expression, legend)
    return absent + [f"{name}{{{label}}}" for name in names - set(absent) for label in wanted if label not in scraped[name]]
