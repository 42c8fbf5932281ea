"""All resources of a job."""

from __future__ import annotations

from collections.abc import Callable

from .deployment import Deployment, Kind, Resource
from .network_policy import network_policy
from .pod_monitor import pod_monitor
from .prometheus_rule import RULES, prometheus_rule
from .ray_cluster import ray_cluster
from .ray_job import ray_job
from .service import service
from .service_account import service_account
from .submitting_job import submitting_job


def resources(job: Deployment, kind: Kind, written: Callable[[str], str] = str) -> list[Resource]:
    """Return the resources, in the order in which they need each other; `written` changes each text of the alert rules."""
    workload = [ray_job(job)] if kind == "rayjob" else [ray_cluster(job), submitting_job(job)]
    rules = prometheus_rule(job, RULES.read_text(encoding="utf-8"), written)
    return [service_account(job), network_policy(job), service(job), pod_monitor(job), rules, *workload]
