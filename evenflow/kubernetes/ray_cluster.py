"""The RayCluster: a head that runs the program and no worker, and a group of worker pods."""

from __future__ import annotations

from .deployment import Deployment, Resource
from .pods import container_security, pod_template

IDLE_SECONDS = 60
"""Seconds after which the autoscaler removes a pod without a worker."""


def cluster_spec(job: Deployment) -> Resource:
    """Return the specification of the cluster, which a RayJob has too.

    KubeRay creates a Secret with a token, which all of Ray's processes and clients need.
    """
    least, most = job.workers
    options = {"version": "v2", "idleTimeoutSeconds": IDLE_SECONDS, "upscalingMode": "Default", "securityContext": container_security()}
    return {
        "rayVersion": job.ray_version,
        "authOptions": {"mode": "token"},
        "enableInTreeAutoscaling": job.autoscaling,
        **({} if job.autoscaling is False else {"autoscalerOptions": options}),
        "headGroupSpec": {"rayStartParams": {"num-cpus": "0"}, "template": pod_template(job, "head", job.head)},
        "workerGroupSpecs": [
            {
                "groupName": "workers",
                "replicas": least,
                "minReplicas": least,
                "maxReplicas": most,
                "rayStartParams": {},
                "template": pod_template(job, "worker", job.worker),
            }
        ],
    }


def ray_cluster(job: Deployment) -> Resource:
    """Return a cluster that stays when the program ends."""
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": job.metadata(), "spec": cluster_spec(job)}
