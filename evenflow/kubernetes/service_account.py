"""The ServiceAccount of all pods, by which a cloud gives them access to the object store."""

from __future__ import annotations

from .deployment import Deployment, Resource


def service_account(job: Deployment) -> Resource:
    """Return the account. KubeRay gives it the rights that Ray's autoscaler needs."""
    metadata = job.metadata()
    if job.account_annotations:
        metadata["annotations"] = job.account_annotations
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
