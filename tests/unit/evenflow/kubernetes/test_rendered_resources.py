"""The resources of `evenflow k8s render` fit the schemas of Kubernetes, KubeRay and the Prometheus operator, strictly."""

from __future__ import annotations

import copy
import math

import pytest
import yaml
from custom_kinds import pods_of, problems

from evenflow.cli.command_line import main, parser_of
from evenflow.environment import VARIABLES
from evenflow.kubernetes.deployment import STOP_SECONDS, TERMINATION_SECONDS
from evenflow.process_end import GRACE, LEAVE_SECONDS

JOB = ["k8s", "render", "jobs/Click_counts.py", "--image", "clicks:1", "--checkpoint", "s3://bucket/jobs"]
ALL_OPTIONS = [
    "--namespace", "streams", "--name", "clicks", "--secret", "s3-keys", "--secret", "PG_PASSWORD=pg-login:password", "--env", "TOPIC=a=b",
    "--volume", "shared:/shared", "--cpus", "500m", "--memory", "2Gi", "--head-cpus", "2", "--head-memory", "3Gi", "--state-size", "1Gi",
    "--retries", "3", "--metrics-port", "9500", "--monitoring-namespace", "prometheus", "--monitoring-label", "release=prometheus",
    "--account-annotation", "eks.amazonaws.com/role-arn=arn:aws:iam::1:role/x", "--ray-version", "2.58.0", "--arguments=--topic 'a b'",
]  # fmt: skip
KINDS = ["ServiceAccount", "NetworkPolicy", "Service", "PodMonitor", "PrometheusRule"]


@pytest.fixture
def rendered(capsys):
    """`rendered(*options)`: the resources by kind, as kubectl would read them."""

    def render(*options: str, workers: str = "2:8") -> dict[str, dict]:
        assert main([*JOB, "--workers", workers, *options]) == 0
        found = list(yaml.safe_load_all(capsys.readouterr().out))
        assert len({each["kind"] for each in found}) == len(found)
        return {each["kind"]: each for each in found}

    return render


def container(template):
    (found,) = template["template"]["spec"]["containers"]
    return found


def variables(found):
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in found["env"]}


@pytest.mark.parametrize("options", [[], ALL_OPTIONS], ids=["defaults", "all options"])
@pytest.mark.parametrize("workers", ["4", "2:8"])
@pytest.mark.parametrize(("kind", "workload"), [("rayjob", ["RayJob"]), ("raycluster", ["RayCluster", "Job"])])
def test_every_resource_fits_its_schema_and_has_no_unknown_field(rendered, kind, workload, workers, options):
    resources = rendered("--kind", kind, *options, workers=workers)
    assert list(resources) == [*KINDS, *workload]
    assert [problem for each in resources.values() for problem in problems(each)] == []


def places(found, path=()):
    """Yield the path of every mapping inside of a resource."""
    for name, each in found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ():
        yield from places(each, (*path, name))
    if isinstance(found, dict):
        yield path


FREE = {"labels", "matchLabels", "annotations", "selector", "rayStartParams", "namespaceSelector", "requests", "limits"}
"""Mappings whose names users choose, or that select by them."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rayjob", "raycluster"])
def test_an_unknown_field_anywhere_is_found(rendered, kind):
    for resource in rendered("--kind", kind, *ALL_OPTIONS).values():
        checked = 0
        for path in places(resource):
            if path and path[-1] in FREE:
                continue
            changed = copy.deepcopy(resource)
            found = changed
            for name in path:
                found = found[name]
            found["unheardOf"] = "x"
            assert problems(changed) != [], path
            checked += 1
        assert checked > 1


def test_the_program_runs_in_the_head_with_the_settings_that_the_resources_give_it(rendered):
    spec = rendered(*ALL_OPTIONS)["RayJob"]["spec"]
    assert spec["entrypoint"] == "python /opt/jobs/Click_counts.py --topic 'a b'"
    head, worker = list(pods_of({"spec": spec["rayClusterSpec"]}))[:2]
    given = variables(container(head))
    assert set(VARIABLES) <= set(given)
    assert (given["EVENFLOW_CHECKPOINT"], given["EVENFLOW_METRICS_PORT"]) == ("s3://bucket/jobs", "9500")
    for each in (head, worker):
        assert variables(container(each))["RAY_worker_niceness"] == "0"
        assert variables(container(each))["TOPIC"] == "a=b"
        assert container(each)["resources"]["limits"].keys() == {"memory"}
    assert spec["rayClusterSpec"]["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"


def test_secrets_are_references_only(rendered):
    resources = rendered(*ALL_OPTIONS)
    head, worker = list(pods_of({"spec": resources["RayJob"]["spec"]["rayClusterSpec"]}))[:2]
    for each in (head, worker):
        assert container(each)["envFrom"] == [{"secretRef": {"name": "s3-keys"}}]
        assert variables(container(each))["PG_PASSWORD"] == {"secretKeyRef": {"name": "pg-login", "key": "password"}}
    assert "Secret" not in resources


def test_pods_have_the_time_that_a_job_needs_to_stop(rendered):
    assert math.ceil(GRACE + LEAVE_SECONDS) < STOP_SECONDS < TERMINATION_SECONDS
    head, worker = list(pods_of({"spec": rendered()["RayJob"]["spec"]["rayClusterSpec"]}))[:2]
    assert variables(container(head))["RAY_JOB_STOP_WAIT_TIME_S"] == str(STOP_SECONDS)
    for each in (head, worker):
        assert each["template"]["spec"]["terminationGracePeriodSeconds"] == TERMINATION_SECONDS
        command = container(each)["lifecycle"]["preStop"]["exec"]["command"]
        assert command[0] == "evenflow"
        assert parser_of("k8s").parse_args(command[1:]).k8s == "pre-stop"


def test_a_range_of_workers_switches_the_autoscaler_on(rendered):
    spec = rendered(workers="2:8")["RayJob"]["spec"]["rayClusterSpec"]
    (group,) = spec["workerGroupSpecs"]
    assert spec["enableInTreeAutoscaling"]
    assert spec["autoscalerOptions"]["version"] == "v2"
    assert (group["replicas"], group["minReplicas"], group["maxReplicas"]) == (2, 2, 8)
    fixed = rendered(workers="4")["RayJob"]["spec"]["rayClusterSpec"]
    (group,) = fixed["workerGroupSpecs"]
    assert (fixed["enableInTreeAutoscaling"], "autoscalerOptions" in fixed) == (False, False)
    assert (group["replicas"], group["minReplicas"], group["maxReplicas"]) == (4, 4, 4)


def test_the_checks_that_kuberay_makes_beyond_its_schema_hold(rendered):
    """Version 2 of the autoscaler needs pods that Kubernetes doesn't restart; KubeRay sets its variable itself."""
    resource = rendered(*ALL_OPTIONS)["RayJob"]
    head, worker = list(pods_of({"spec": resource["spec"]["rayClusterSpec"]}))[:2]
    for each in (head, worker):
        assert each["template"]["spec"]["restartPolicy"] == "Never"
        assert "RAY_enable_autoscaler_v2" not in variables(container(each))
    assert "upgradeStrategy" not in resource["spec"]["rayClusterSpec"]


def test_the_head_names_the_ports_of_ray_too(rendered):
    """KubeRay's Service of the head has only the ports that the container names, if it names any."""
    head, worker = list(pods_of({"spec": rendered()["RayJob"]["spec"]["rayClusterSpec"]}))[:2]
    ports = {port["name"]: port["containerPort"] for port in container(head)["ports"]}
    assert ports == {"gcs-server": 6379, "dashboard": 8265, "client": 10001, "evenflow": 9400}
    assert "ports" not in container(worker)


def test_a_lost_head_is_a_failure_that_kuberay_retries(rendered):
    """The submitting pod fails with the head, and isn't retried: KubeRay then starts the program on a new cluster."""
    spec = rendered()["RayJob"]["spec"]
    assert spec["backoffLimit"] == 100
    assert spec["submitterConfig"]["backoffLimit"] == 0
    probe = spec["submitterPodTemplate"]["spec"]["containers"][0]["livenessProbe"]
    seconds = probe["initialDelaySeconds"] + probe["periodSeconds"] * (probe["failureThreshold"] + 1)
    assert seconds < 300, "KubeRay gives up after five minutes without an answer of the head"


def test_all_pods_and_only_they_are_selected(rendered):
    resources = rendered("--kind", "raycluster")
    labels = {"app.kubernetes.io/name": "evenflow", "app.kubernetes.io/instance": "click-counts"}
    policy = resources["NetworkPolicy"]["spec"]
    assert policy["podSelector"] == {"matchLabels": labels}
    assert policy["ingress"][0] == {"from": [{"podSelector": {"matchLabels": labels}}]}
    templates = [each["template"] for each in pods_of(resources["RayCluster"]) if "metadata" in each["template"]]
    for template in (*templates, resources["Job"]["spec"]["template"]):
        assert template["metadata"]["labels"] == labels
        assert template["spec"]["serviceAccountName"] == resources["ServiceAccount"]["metadata"]["name"]
    head = {**labels, "ray.io/node-type": "head"}
    assert resources["Service"]["spec"]["selector"] == head
    assert resources["PodMonitor"]["spec"]["selector"] == {"matchLabels": head}


def test_prometheus_and_the_operator_reach_one_port_each(rendered):
    policy = rendered("--monitoring-namespace", "prometheus", "--metrics-port", "9500")["NetworkPolicy"]["spec"]
    _, monitoring, operator = policy["ingress"]
    assert monitoring["from"] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "prometheus"}}}]
    assert [port["port"] for port in monitoring["ports"]] == [9500]
    assert [port["port"] for port in operator["ports"]] == [8265]
    assert policy["policyTypes"] == ["Ingress"]


def test_pods_meet_the_standard_restricted(rendered):
    for resource in (rendered()["RayJob"], rendered("--kind", "raycluster")["RayCluster"]):
        for each in pods_of(resource):
            spec = each["template"]["spec"]
            if spec["containers"][0]["name"] != "autoscaler":
                assert spec["securityContext"]["runAsNonRoot"]
                assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
            security = spec["containers"][0]["securityContext"]
            assert (security["allowPrivilegeEscalation"], security["capabilities"]) == (False, {"drop": ["ALL"]})


def test_the_job_of_a_cluster_submits_through_the_command(rendered):
    resources = rendered("--kind", "raycluster")
    (found,) = resources["Job"]["spec"]["template"]["spec"]["containers"]
    assert found["command"][0] == "evenflow"
    arguments = parser_of("k8s").parse_args(found["command"][1:])
    assert (arguments.k8s, arguments.entrypoint) == ("submit", "python /opt/jobs/Click_counts.py")
    assert arguments.address == "http://click-counts-head-svc:8265"
    assert arguments.run.strip("$()") in variables(found)
    assert variables(found)["RAY_AUTH_MODE"] == resources["RayCluster"]["spec"]["authOptions"]["mode"] == "token"
    assert variables(found)["RAY_AUTH_TOKEN"] == {"secretKeyRef": {"name": "click-counts", "key": "auth_token"}}


def test_kinds_can_be_omitted(rendered):
    kinds = list(rendered("--without", "PodMonitor", "--without", "PrometheusRule"))
    assert kinds == ["ServiceAccount", "NetworkPolicy", "Service", "RayJob"]


def test_each_resource_is_a_file_in_the_order_of_application(tmp_path, capsys):
    assert main([*JOB, "--workers", "4", "--output", str(tmp_path / "k8s")]) == 0
    paths = sorted((tmp_path / "k8s").iterdir())
    assert [path.name for path in paths] == [f"{n}-{kind.lower()}.yaml" for n, kind in enumerate([*KINDS, "RayJob"], 1)]
    assert [yaml.safe_load(path.read_text())["kind"] for path in paths] == [*KINDS, "RayJob"]
    assert "1-serviceaccount.yaml" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--workers", "8:2"], "the least and the most"),
        (["--workers", "0"], "the least is at least 1"),
        (["--workers", "many"], "a number of pods"),
        (["--workers", "2", "--checkpoint", "checkpoints"], "expected a URL"),
        (["--workers", "2", "--checkpoint", "/shared/checkpoints"], "is on no --volume"),
        (["--workers", "2", "--checkpoint", "/shared2/c", "--volume", "shared:/shared"], "is on no --volume"),
        (["--workers", "2", "--secret", "PASSWORD=secret"], "VARIABLE=NAME:KEY"),
        (["--workers", "2", "--secret", "Login"], "expected the NAME of a Secret"),
        (["--workers", "2", "--env", "A"], "expected NAME=VALUE"),
        (["--workers", "2", "--env", "A-B=c"], "no name of a variable"),
        (["--workers", "2", "--name", "Clicks"], "small letters"),
        (["--workers", "2", "--name", "a" * 48], "at most 47"),
        (["--workers", "2", "--cpus", "four"], "a quantity of Kubernetes"),
        (["--workers", "2", "--volume", "shared"], "expected CLAIM:PATH"),
        (["--workers", "2", "--metrics-port", "0"], "from 1 to 65535"),
        (["--workers", "2", "--retries", "-1"], "expected a number from 0"),
        (["--workers", "2", "--arguments", "'"], "No closing quotation"),
    ],
)
def test_a_wrong_option_is_refused_by_its_name(options, said, capsys):
    with pytest.raises(SystemExit) as ended:
        main([*JOB, *options])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_a_folder_that_is_a_file_is_refused(tmp_path, capsys):
    (tmp_path / "k8s").write_text("")
    assert main([*JOB, "--workers", "4", "--output", str(tmp_path / "k8s")]) == 1
    assert "can't be written" in capsys.readouterr().err
