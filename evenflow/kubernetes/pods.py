"""The pods of a Ray cluster: containers, probes, variables, and what happens when a pod ends."""

from __future__ import annotations

from typing import Any, Literal

from .deployment import DASHBOARD_PORT, STOP_SECONDS, TERMINATION_SECONDS, Deployment, Resource, Size

PORT_NAME = "evenflow"
"""The name of the port of metrics. KubeRay gives the name `metrics` to Ray's own."""

STATE_FOLDER = "/var/lib/evenflow"
"""The folder for keyed state on disk. It ends with its pod: checkpoints outlive it."""

AGENT_PORT = 52365
"""The port at which Ray's agent on each node says if the node is alive."""

START_TIMEOUT = "15m"
"""Time for workers to start: pods may have to come first, with machines below them."""

USER = 1000


def pod_template(job: Deployment, role: Literal["head", "worker"], size: Size) -> Resource:
    """Return the template of the head's pod or of a worker's."""
    head = role == "head"
    container = {
        "name": f"ray-{role}",
        "image": job.image,
        "ports": _ports(job) if head else [],
        "env": [*_ray_variables(), *(_head_variables(job) if head else []), *job.env],
        **env_from(job),
        "resources": resources(size),
        **_probes(),
        "lifecycle": {"preStop": {"exec": {"command": ["evenflow", "k8s", "pre-stop"]}}},
        "volumeMounts": [{"name": "state", "mountPath": STATE_FOLDER}, *job.mounts],
        "securityContext": container_security(),
    }
    spec = {
        "serviceAccountName": job.name,
        # The head's pod needs its account for Ray's autoscaler.
        **({} if head else {"automountServiceAccountToken": False}),
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": TERMINATION_SECONDS,
        "securityContext": pod_security(),
        "containers": [{name: each for name, each in container.items() if each != []}],
        "volumes": [{"name": "state", "emptyDir": {"sizeLimit": job.state_size}}, *job.volumes],
    }
    return {"metadata": {"labels": job.labels}, "spec": spec}


def env_from(job: Deployment) -> Resource:
    """Return the Secrets whose entries become variables."""
    return {"envFrom": job.env_from} if job.env_from else {}


def resources(size: Size) -> Resource:
    """Return requests and limits. Processors have no limit, because a stream that catches up may use those that are free."""
    return {"requests": {"cpu": size.cpus, "memory": size.memory}, "limits": {"memory": size.memory}}


def pod_security() -> Resource:
    """Return the settings with which a pod meets Kubernetes' standard `restricted`."""
    return {"runAsNonRoot": True, "runAsUser": USER, "fsGroup": USER, "seccompProfile": {"type": "RuntimeDefault"}}


def container_security() -> Resource:
    """Return the settings with which a container meets Kubernetes' standard `restricted`."""
    return {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def variable(name: str, value: Any) -> Resource:
    """Return a variable of a container."""
    return {"name": name, "value": value}


def _ports(job: Deployment) -> list[Resource]:
    """Return all ports of the head: with one port that is named here, KubeRay adds those of Ray no longer."""
    ports = {"gcs-server": 6379, "dashboard": DASHBOARD_PORT, "client": 10001, PORT_NAME: job.metrics_port}
    return [{"name": name, "containerPort": port} for name, port in ports.items()]


def _ray_variables() -> list[Resource]:
    """Return the settings of Ray's processes, which run workers at a low priority by default."""
    return [variable("RAY_worker_niceness", "0"), variable("RAY_USAGE_STATS_ENABLED", "0")]


def _head_variables(job: Deployment) -> list[Resource]:
    """Return the settings of the program, which runs in the head's pod, and the time that Ray gives it to stop."""
    return [
        variable("RAY_JOB_STOP_WAIT_TIME_S", str(STOP_SECONDS)),
        variable("EVENFLOW_CHECKPOINT", job.checkpoint),
        variable("EVENFLOW_METRICS_HOST", "0.0.0.0"),  # noqa: S104 -- the network policy says who reaches it
        variable("EVENFLOW_METRICS_PORT", str(job.metrics_port)),
        variable("EVENFLOW_WORKER_CPUS", "1"),
        variable("EVENFLOW_WORKER_START_TIMEOUT", START_TIMEOUT),
        variable("EVENFLOW_COORDINATOR", "driver"),
    ]


def _probes() -> Resource:
    """Return probes that a node whose processors are busy passes too: it has two minutes to answer."""
    asks = {"httpGet": {"path": "/api/local_raylet_healthz", "port": AGENT_PORT}}
    return {
        "startupProbe": {**asks, "periodSeconds": 5, "timeoutSeconds": 5, "failureThreshold": 60},
        "readinessProbe": {**asks, "periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 6},
        "livenessProbe": {**asks, "periodSeconds": 10, "timeoutSeconds": 10, "failureThreshold": 12},
    }
