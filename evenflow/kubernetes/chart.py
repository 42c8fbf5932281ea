"""A Helm chart of the same resources: built with placeholders for what `values.yaml` says."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.metadata import version

from .deployment import MONITORING, Deployment, Kind, Resource, Size
from .placeholders import RELEASE, Each, less, literal, value
from .resources import resources
from .yaml_text import yaml_of

CHART = "evenflow-job"
CHART_VERSION = "0.1.0"

GUARDS = {"NetworkPolicy": "networkPolicy.enabled", **dict.fromkeys(MONITORING, "monitoring.enabled")}
"""The value that switches a kind on."""

COMMENTS = {
    "image": "the image of all pods, with evenflow and the program",
    "entrypoint": "the command of the program in the image",
    "checkpoint": "the folder of checkpoints: a URL of an object store, or a path on a volume of all pods",
    "workers": "the fewest and the most worker pods; Ray's autoscaler chooses if they differ",
    "worker": "the size of a worker pod; it runs one worker for each processor",
    "head": "the size of the pod that runs the program and no worker",
    "stateSize": "the limit of each pod's disk at /var/lib/evenflow, for state on disk",
    "rayVersion": "the version of Ray in the image",
    "retries": "how often the program starts again after its process or its cluster has failed",
    "env": "variables of all pods, also with references to Secrets (valueFrom)",
    "envFrom": "Secrets and ConfigMaps whose entries become variables of all pods",
    "volumes": "volumes of all pods",
    "volumeMounts": "where the pods see them",
    "serviceAccount": "annotations of the pods' account, by which a cloud gives access to the object store",
    "networkPolicy": "restricts who may connect to the pods; Prometheus runs in monitoringNamespace",
    "monitoring": "a PodMonitor and alert rules for the Prometheus operator, with the labels that it looks for",
}


def chart_files(job: Deployment, kind: Kind) -> dict[str, str]:
    """Return the texts of the chart's files by path. The settings of `job` are the defaults of its values."""
    head = {"apiVersion": "v2", "name": CHART, "type": "application", "version": CHART_VERSION, "appVersion": version("evenflow")}
    about = {"description": "A stream dataflow of evenflow on Ray, run by KubeRay's operator"}
    files = {"Chart.yaml": yaml_of({**head, **about}), "values.yaml": _commented(_values(job))}
    for resource in resources(_placeholders(job), kind, literal):
        files[f"templates/{resource['kind'].lower()}.yaml"] = _guarded(resource)
    return files


def _placeholders(job: Deployment) -> Deployment:
    return replace(
        job,
        name=RELEASE,
        namespace=None,
        image=value("image"),
        entrypoint=value("entrypoint"),
        checkpoint=value("checkpoint"),
        workers=(value("workers.min"), value("workers.max")),
        autoscaling=less("workers.min", "workers.max"),
        worker=Size(value("worker.cpu"), value("worker.memory")),
        head=Size(value("head.cpu"), value("head.memory")),
        state_size=value("stateSize"),
        ray_version=value("rayVersion"),
        retries=value("retries"),
        env=[Each("env")],
        env_from=value("envFrom"),
        volumes=[Each("volumes")],
        mounts=[Each("volumeMounts")],
        monitoring_namespace=value("networkPolicy.monitoringNamespace"),
        monitoring_labels={Each("monitoring.labels"): None},
        account_annotations=value("serviceAccount.annotations"),
    )


def _values(job: Deployment) -> Resource:
    least, most = job.workers
    return {
        "image": job.image,
        "entrypoint": job.entrypoint,
        "checkpoint": job.checkpoint,
        "workers": {"min": least, "max": most},
        "worker": {"cpu": job.worker.cpus, "memory": job.worker.memory},
        "head": {"cpu": job.head.cpus, "memory": job.head.memory},
        "stateSize": job.state_size,
        "rayVersion": job.ray_version,
        "retries": job.retries,
        "env": list(job.env),
        "envFrom": list(job.env_from),
        "volumes": list(job.volumes),
        "volumeMounts": list(job.mounts),
        "serviceAccount": {"annotations": dict(job.account_annotations)},
        "networkPolicy": {"enabled": True, "monitoringNamespace": job.monitoring_namespace},
        "monitoring": {"enabled": True, "labels": dict(job.monitoring_labels)},
    }


def _commented(values: Resource) -> str:
    """Write the values, each below a line that says what it is."""
    return re.sub(r"^(\w+):", lambda found: f"# {COMMENTS[found[1]]}\n{found[0]}", yaml_of(values), flags=re.MULTILINE)


def _guarded(resource: Resource) -> str:
    guard = GUARDS.get(resource["kind"])
    text = yaml_of(resource)
    return text if guard is None else f"{{{{- if .Values.{guard} }}}}\n{text}{{{{- end }}}}\n"
