"""The PodMonitor, by which the Prometheus operator finds the job's metrics."""

from __future__ import annotations

from .deployment import Deployment, Resource
from .pods import PORT_NAME
from .service import HEAD


def pod_monitor(job: Deployment) -> Resource:
    """Return the monitor. The label `job` of the metrics is the job's own name; `evenflow_job` also marks the target, if it is down."""
    endpoint = {
        "port": PORT_NAME, "path": "/metrics", "interval": "15s", "honorLabels": True,
        "relabelings": [{"targetLabel": "evenflow_job", "replacement": job.name}],
    }  # fmt: skip
    spec = {"selector": {"matchLabels": {**job.labels, **HEAD}}, "podMetricsEndpoints": [endpoint]}
    metadata = job.metadata(more_labels=job.monitoring_labels)
    return {"apiVersion": "monitoring.coreos.com/v1", "kind": "PodMonitor", "metadata": metadata, "spec": spec}
