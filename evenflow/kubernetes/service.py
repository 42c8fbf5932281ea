"""The Service of the job's metrics, which are served in the head's pod."""

from __future__ import annotations

from .deployment import Deployment, Resource
from .pods import PORT_NAME

HEAD = {"ray.io/node-type": "head"}
"""The label that KubeRay gives to the head's pod."""


def service(job: Deployment) -> Resource:
    """Return the Service."""
    spec = {
        "clusterIP": "None",
        "selector": {**job.labels, **HEAD},
        "ports": [{"name": PORT_NAME, "port": job.metrics_port, "targetPort": PORT_NAME}],
    }
    return {"apiVersion": "v1", "kind": "Service", "metadata": job.metadata("-metrics"), "spec": spec}
