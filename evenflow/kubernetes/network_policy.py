"""The NetworkPolicy: who may connect to the pods. It doesn't restrict to whom they connect."""

from __future__ import annotations

from .deployment import DASHBOARD_PORT, Deployment, Resource

OPERATOR = {"app.kubernetes.io/component": "kuberay-operator"}
"""The label of KubeRay's operator, in its Helm chart and in its manifests."""

NAMESPACE = "kubernetes.io/metadata.name"
"""The label that Kubernetes gives to every namespace: its name."""


def network_policy(job: Deployment) -> Resource:
    """Return the policy.

    The job's pods reach each other on all ports, because records travel on ports that change. Prometheus reaches the metrics, and
    KubeRay's operator the dashboard, where it asks for the program's state.
    """
    own = {"matchLabels": job.labels}
    monitoring = {"namespaceSelector": {"matchLabels": {NAMESPACE: job.monitoring_namespace}}}
    operator = {"namespaceSelector": {}, "podSelector": {"matchLabels": OPERATOR}}
    spec = {
        "podSelector": own,
        "policyTypes": ["Ingress"],
        "ingress": [
            {"from": [{"podSelector": own}]},
            {"from": [monitoring], "ports": [{"protocol": "TCP", "port": job.metrics_port}]},
            {"from": [operator], "ports": [{"protocol": "TCP", "port": DASHBOARD_PORT}]},
        ],
    }
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": job.metadata(), "spec": spec}
