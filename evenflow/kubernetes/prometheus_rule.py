"""The PrometheusRule: alert rules for the Prometheus operator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from .deployment import Deployment, Resource

RULES = Path(__file__).parents[1] / "grafana" / "alerts.yml"
"""The alert rules that `evenflow grafana` writes, in the format of Prometheus's `rule_files`."""


def prometheus_rule(job: Deployment, rules: str, written: Callable[[str], str] = str) -> Resource:
    """Return a resource with the rules of a file's text; `written` changes each text of theirs."""
    groups = _changed(yaml.safe_load(rules)["groups"], written)
    metadata = job.metadata(more_labels=job.monitoring_labels)
    return {"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "metadata": metadata, "spec": {"groups": groups}}


def _changed(found: Any, written: Callable[[str], str]) -> Any:
    match found:
        case str():
            return written(found)
        case list():
            return [_changed(item, written) for item in found]
        case dict():
            return {name: _changed(item, written) for name, item in found.items()}
        case _:
            return found
