"""The Helm chart renders to the same resources as the command, and to what its values say. Helm's own templates are filled in by
`helm_templates.py`.
"""

from __future__ import annotations

import pytest
import yaml
from custom_kinds import pods_of, problems
from helm_templates import filled

from evenflow.cli.command_line import main
from evenflow.kubernetes.chart import COMMENTS
from evenflow.kubernetes.placeholders import RELEASE

SETTINGS = [
    "job.py", "--image", "clicks:1", "--checkpoint", "s3://bucket/jobs", "--workers", "2:8", "--secret", "s3-keys", "--secret",
    "PG_PASSWORD=pg-login:password", "--env", "TOPIC=clicks", "--volume", "shared:/shared", "--cpus", "500m", "--memory", "2Gi",
    "--monitoring-label", "release=prometheus", "--account-annotation", "role=reader",
]  # fmt: skip


@pytest.fixture
def installed(tmp_path):
    """`installed(values, *options)`: the resources of a chart with these values among its own, by kind."""

    def install(values=None, *options: str) -> dict[str, dict]:
        assert main(["k8s", "helm", *options, "--output", str(tmp_path / "chart")]) == 0
        own = yaml.safe_load((tmp_path / "chart" / "values.yaml").read_text())
        for name, value in (values or {}).items():
            own[name] = {**own[name], **value} if isinstance(value, dict) else value
        templates = [filled(path.read_text(), own, "clicks") for path in sorted((tmp_path / "chart" / "templates").iterdir())]
        return {each["kind"]: each for text in templates for each in yaml.safe_load_all(text) if each is not None}

    return install


def head_of(resources):
    return next(pods_of({"spec": resources["RayJob"]["spec"]["rayClusterSpec"]}))["template"]["spec"]["containers"][0]


@pytest.mark.parametrize("kind", ["rayjob", "raycluster"])
def test_with_its_own_values_it_has_the_resources_of_render(installed, capsys, kind):
    assert main(["k8s", "render", *SETTINGS, "--kind", kind, "--name", "clicks"]) == 0
    rendered = {each["kind"]: each for each in yaml.safe_load_all(capsys.readouterr().out)}
    assert installed(None, *SETTINGS, "--kind", kind) == rendered


def test_without_arguments_its_values_are_samples_that_fit(installed):
    resources = installed()
    assert {"RayJob", "NetworkPolicy", "PodMonitor", "PrometheusRule", "Service", "ServiceAccount"} == set(resources)
    assert [problem for each in resources.values() for problem in problems(each)] == []


def test_values_change_the_resources(installed):
    resources = installed(
        {
            "image": 'registry/"odd":1',
            "workers": {"min": 3, "max": 3},
            "worker": {"cpu": 2, "memory": "1Gi"},
            "env": [{"name": "A", "value": "{{ x }}: y"}],
            "envFrom": [{"secretRef": {"name": "s3"}}],
            "monitoring": {"labels": {"release": "p", "team": "streams"}},
            "serviceAccount": {"annotations": {"a/b": "c"}},
            "networkPolicy": {"monitoringNamespace": "prometheus"},
        }
    )
    assert [problem for each in resources.values() for problem in problems(each)] == []
    cluster, head = resources["RayJob"]["spec"]["rayClusterSpec"], head_of(resources)
    assert head["image"] == 'registry/"odd":1'
    assert cluster["enableInTreeAutoscaling"] is False
    assert cluster["workerGroupSpecs"][0]["maxReplicas"] == 3
    assert cluster["workerGroupSpecs"][0]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] == 2
    assert {"name": "A", "value": "{{ x }}: y"} in head["env"]
    assert head["envFrom"] == [{"secretRef": {"name": "s3"}}]
    assert resources["PodMonitor"]["metadata"]["labels"]["team"] == "streams"
    assert resources["ServiceAccount"]["metadata"]["annotations"] == {"a/b": "c"}
    peer = resources["NetworkPolicy"]["spec"]["ingress"][1]["from"][0]
    assert peer["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "prometheus"}


def test_values_switch_kinds_off(installed):
    off = {"enabled": False}
    assert set(installed({"monitoring": off, "networkPolicy": off})) == {"RayJob", "Service", "ServiceAccount"}


def test_every_value_is_explained_and_used(installed, tmp_path):
    installed()
    values = (tmp_path / "chart" / "values.yaml").read_text()
    templates = "".join(path.read_text() for path in (tmp_path / "chart" / "templates").iterdir())
    for name in yaml.safe_load(values):
        assert f"# {COMMENTS[name]}\n{name}:" in values
        assert f".Values.{name}" in templates
    assert RELEASE in templates
    chart = yaml.safe_load((tmp_path / "chart" / "Chart.yaml").read_text())
    assert (chart["apiVersion"], chart["type"]) == ("v2", "application")


def test_alerts_keep_the_templates_of_prometheus(installed):
    rules = installed()["PrometheusRule"]["spec"]["groups"][0]["rules"]
    assert all("{{ $labels." in rule["annotations"]["summary"] for rule in rules)


@pytest.mark.parametrize("template", ["a: {{ .Chart.Name }}", "{{- range .Release }}\n{{- end }}", "{{- if .Values.a }}"])
def test_an_unknown_template_is_refused(template):
    with pytest.raises(ValueError, match=r"unknown|without an end"):
        filled(template, {"a": 1}, "clicks")
