"""The RayJob: a cluster for one program, which is started again on a new cluster after a failure, and resumes.

Losing the head ends the program. KubeRay then notices only that the pod that submitted the program has failed, and starts again at
once only if that pod isn't retried: a second one would wait for the lost head. After five minutes without a head KubeRay gives up.
"""

from __future__ import annotations

from .deployment import Deployment, Resource, Size
from .pods import container_security, pod_security, resources
from .ray_cluster import cluster_spec

KEPT_SECONDS = 600
"""Seconds for which the cluster of a program that has ended stays, for its logs."""

SUBMITTER = Size("100m", "512Mi")

ASK_DASHBOARD = (
    "import os, urllib.request; urllib.request.urlopen('http://' + os.environ['RAY_DASHBOARD_ADDRESS'] + '/api/gcs_healthz', timeout=8)"
)
"""A program that fails if the head doesn't answer. KubeRay sets the variable."""


def ray_job(job: Deployment) -> Resource:
    """Return the job."""
    spec = {
        "entrypoint": job.entrypoint,
        "submissionMode": "K8sJobMode",
        "backoffLimit": job.retries,
        "shutdownAfterJobFinishes": True,
        "ttlSecondsAfterFinished": KEPT_SECONDS,
        "submitterConfig": {"backoffLimit": 0},
        "submitterPodTemplate": _submitter(job),
        "rayClusterSpec": cluster_spec(job),
    }
    return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": job.metadata(), "spec": spec}


def _submitter(job: Deployment) -> Resource:
    """Return the pod that submits the program and prints its log. It fails within three minutes if the head is gone."""
    container = {
        "name": "submitter",
        "image": job.image,
        "resources": resources(SUBMITTER),
        "livenessProbe": {
            "exec": {"command": ["python", "-c", ASK_DASHBOARD]},
            "initialDelaySeconds": 60,
            "periodSeconds": 10,
            "timeoutSeconds": 10,
            "failureThreshold": 12,
        },
        "securityContext": container_security(),
    }
    spec = {
        "serviceAccountName": job.name,
        "automountServiceAccountToken": False,
        "restartPolicy": "Never",
        "securityContext": pod_security(),
        "containers": [container],
    }
    return {"metadata": {"labels": job.labels}, "spec": spec}
