"""The fields that KubeRay and the Prometheus operator define for their kinds, as JSON Schema without any unknown field.

Written by hand: names, types, choices and required fields of `ray.io/v1` (KubeRay's operator of August 2026, commit feeaf72) and of
`monitoring.coreos.com/v1` (Prometheus operator of August 2026, commit 6adcebc). A kind of Kubernetes inside of these is checked by
`kubernetes_validate`, as a resource of its own. Fields that no resource of evenflow has yet may be missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

SCHEMAS_OF_KUBERNETES = files("kubernetes_validate") / "kubernetes-json-schema" / "v1.37.0-local-strict"
"""Kubernetes' schemas without any unknown field, which the package `kubernetes-validate` ships."""

TEXT, FLAG, ANY = {"type": "string"}, {"type": "boolean"}, {"type": "object"}
TEXTS = {"type": "array", "items": TEXT}
MAPPING = {"type": "object", "additionalProperties": TEXT}
INT32 = {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1}
QUANTITY = {"anyOf": [{"type": "integer"}, {"type": "string", "pattern": r"^[+-]?(\d+(\.\d*)?|\.\d+)([KMGTPE]i|[numkMGTPE])?$"}]}
PORT = {"anyOf": [{"type": "integer"}, TEXT]}
DURATION = {"type": "string", "pattern": r"^(0|(\d+y)?(\d+w)?(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?)$"}


def one_of(*values: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


def many(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def fields(required: str = "", **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required.split(), "additionalProperties": False}


def kind(spec: dict[str, Any]) -> dict[str, Any]:
    return fields("apiVersion kind metadata spec", apiVersion=TEXT, kind=TEXT, metadata=ANY, spec=spec)


CONTAINER_PARTS = {"env": many(ANY), "envFrom": many(ANY), "resources": ANY, "securityContext": ANY, "volumeMounts": many(ANY)}
"""Parts of the autoscaler's container, which `pods_of` puts into a container to check them."""

AUTOSCALER = fields(
    **CONTAINER_PARTS, args=TEXTS, command=TEXTS, idleTimeoutSeconds=INT32, image=TEXT, imagePullPolicy=TEXT,
    upscalingMode=one_of("Default", "Aggressive", "Conservative"), version=one_of("v1", "v2"),
)  # fmt: skip
HEAD_GROUP = fields(
    "template",
    enableIngress=FLAG,
    headService=ANY,
    labels=MAPPING,
    rayStartParams=MAPPING,
    resources=MAPPING,
    serviceType=TEXT,
    template=ANY,
)
WORKER_GROUP = fields(
    "groupName minReplicas maxReplicas template", groupName=TEXT, idleTimeoutSeconds=INT32, labels=MAPPING, maxReplicas=INT32,
    minReplicas=INT32, numOfHosts=INT32, priority=INT32, rayStartParams=MAPPING, replicas=INT32, resources=MAPPING,
    scaleStrategy=fields(workersToDelete=TEXTS), suspend=FLAG, template=ANY,
)  # fmt: skip
CLUSTER = fields(
    "headGroupSpec", authOptions=fields(enableK8sTokenAuth=FLAG, mode=one_of("disabled", "token"), secretName=TEXT),
    autoscalerOptions=AUTOSCALER, enableInTreeAutoscaling=FLAG, headGroupSpec=HEAD_GROUP, headServiceAnnotations=MAPPING, managedBy=TEXT,
    rayVersion=TEXT, suspend=FLAG, tlsOptions=fields(enabled=FLAG), upgradeStrategy=fields(type=one_of("Recreate", "None")),
    workerGroupSpecs=many(WORKER_GROUP),
)  # fmt: skip
RAY_JOB = fields(
    activeDeadlineSeconds=INT32, backoffLimit=INT32, clusterSelector=MAPPING, entrypoint=TEXT, entrypointNumCpus={"type": "number"},
    entrypointNumGpus={"type": "number"}, entrypointResources=TEXT, jobId=TEXT, managedBy=TEXT, metadata=MAPPING,
    preRunningDeadlineSeconds={**INT32, "minimum": 1}, rayClusterSpec=CLUSTER, runtimeEnvYAML=TEXT, shutdownAfterJobFinishes=FLAG,
    submissionMode=TEXT, submitterConfig=fields(backoffLimit=INT32), submitterPodTemplate=ANY, suspend=FLAG, ttlSecondsAfterFinished=INT32,
)  # fmt: skip
SELECTOR = fields(matchLabels=MAPPING, matchExpressions=many(fields("key operator", key=TEXT, operator=TEXT, values=TEXTS)))
RELABELING = fields(
    action=TEXT, modulus={"type": "integer"}, regex=TEXT, replacement=TEXT, separator=TEXT, sourceLabels=TEXTS, targetLabel=TEXT
)
ENDPOINT = fields(
    enableHttp2=FLAG, filterRunning=FLAG, followRedirects=FLAG, honorLabels=FLAG, honorTimestamps=FLAG, interval=DURATION, path=TEXT,
    port=TEXT, portNumber={**INT32, "minimum": 1, "maximum": 65535}, scheme=one_of("http", "https", "HTTP", "HTTPS"),
    relabelings=many(RELABELING), scrapeTimeout=DURATION, targetPort=PORT,
)  # fmt: skip
POD_MONITOR = fields(
    "selector", jobLabel=TEXT, namespaceSelector=fields(any=FLAG, matchNames=TEXTS), podMetricsEndpoints=many(ENDPOINT),
    podTargetLabels=TEXTS, selector=SELECTOR,
)  # fmt: skip
RULE = fields(
    "expr", alert=TEXT, annotations=MAPPING, expr=PORT, keep_firing_for=DURATION, labels=MAPPING, record=TEXT, **{"for": DURATION}
)
GROUP = fields(
    "name",
    interval=DURATION,
    labels=MAPPING,
    limit={"type": "integer"},
    name={**TEXT, "minLength": 1},
    query_offset=DURATION,
    rules=many(RULE),
)

SCHEMAS = {
    "RayCluster": kind(CLUSTER),
    "RayJob": kind(RAY_JOB),
    "PodMonitor": kind(POD_MONITOR),
    "PrometheusRule": kind(fields(groups=many(GROUP))),
}
VERSIONS = {
    "RayCluster": "ray.io/v1",
    "RayJob": "ray.io/v1",
    "PodMonitor": "monitoring.coreos.com/v1",
    "PrometheusRule": "monitoring.coreos.com/v1",
}


def problems(resource: dict[str, Any]) -> list[str]:
    """Return what an API server would refuse or silently remove: unknown fields, wrong types, missing fields."""
    name = resource["kind"]
    if name not in SCHEMAS:
        return _of_kubernetes(resource)
    found = [f"{error.json_path}: {error.message}" for error in Draft202012Validator(SCHEMAS[name]).iter_errors(resource)]
    found += [] if resource["apiVersion"] == VERSIONS[name] else [f"apiVersion {resource['apiVersion']}"]
    stand_in = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": resource["metadata"]}
    return found + [problem for each in (stand_in, *pods_of(resource)) for problem in _of_kubernetes(each)]


def pods_of(resource: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the pods inside of a resource, each as Kubernetes' kind for it."""
    spec = resource["spec"]
    cluster = spec.get("rayClusterSpec", spec)
    groups = [cluster[name] for name in ("headGroupSpec",) if name in cluster] + cluster.get("workerGroupSpecs", [])
    templates = [group["template"] for group in groups] + [spec[name] for name in ("submitterPodTemplate",) if name in spec]
    if "autoscalerOptions" in cluster:
        parts = {name: part for name, part in cluster["autoscalerOptions"].items() if name in CONTAINER_PARTS}
        templates.append({"spec": {"containers": [{"name": "autoscaler", **parts}]}})
    for template in templates:
        yield {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "checked"}, "template": template}


def _of_kubernetes(resource: dict[str, Any]) -> list[str]:
    version = resource["apiVersion"].replace(".k8s.io", "").replace("/", "-")
    return [
        f"{resource['kind']} {error.json_path}: {error.message}"
        for error in _validator(f"{resource['kind'].lower()}-{version}.json").iter_errors(resource)
    ]


@cache
def _validator(schema: str) -> Draft202012Validator:
    return Draft202012Validator(_read(schema), registry=_definitions())


@cache
def _definitions() -> Registry[Any]:
    return Resource.from_contents(_read("_definitions.json")) @ Registry()


def _read(name: str) -> Any:
    return json.loads((SCHEMAS_OF_KUBERNETES / name).read_text())
