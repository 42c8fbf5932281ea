"""The Job that submits the program to a RayCluster, and follows it."""

from __future__ import annotations

from .deployment import DASHBOARD_PORT, Deployment, Resource
from .pods import container_security, pod_security, resources, variable
from .ray_job import SUBMITTER

RUN = "EVENFLOW_RUN"
"""The variable that identifies the Job to all of its pods: only one of them submits the program while it runs."""

TOKEN = "auth_token"  # noqa: S105 -- the name of its entry
"""The entry with Ray's token in the Secret that KubeRay creates, with the name of the cluster."""


def submitting_job(job: Deployment) -> Resource:
    """Return the Job. `evenflow k8s submit` says what its pods do."""
    address = f"http://{job.name}-head-svc:{DASHBOARD_PORT}"
    container = {
        "name": "submitter",
        "image": job.image,
        "command": ["evenflow", "k8s", "submit", "--address", address, "--run", f"$({RUN})", "--entrypoint", job.entrypoint],
        "env": [
            {"name": RUN, "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['batch.kubernetes.io/controller-uid']"}}},
            variable("RAY_AUTH_MODE", "token"),
            {"name": "RAY_AUTH_TOKEN", "valueFrom": {"secretKeyRef": {"name": job.name, "key": TOKEN}}},
        ],
        "resources": resources(SUBMITTER),
        "securityContext": container_security(),
    }
    template = {
        "metadata": {"labels": job.labels},
        "spec": {
            "serviceAccountName": job.name,
            "automountServiceAccountToken": False,
            "restartPolicy": "Never",
            "securityContext": pod_security(),
            "containers": [container],
        },
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": job.metadata(),
        "spec": {"backoffLimit": job.retries, "template": template},
    }
