"""Every query of the dashboards asks for what a real job tells."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from asking import labels_of, metrics_of, missing
from patience import patience
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

import evenflow as ef
from evenflow.actors.job.prometheus import JobCollector
from evenflow.cli.command_line import main
from evenflow.engine.time.datetimes import as_datetime
from evenflow.grafana.export import HERE
from evenflow.scheduler.load.metrics import SplitProgress
from evenflow.scheduler.protocol.effects import JobState
from evenflow.scheduler.protocol.requests import ShowFigures

QUERIES = [
    pytest.param(target["expr"], target["legendFormat"], id=f"{path.name}: {panel['title']} {target['refId']}")
    for path in sorted(HERE.glob("dashboards/*.json"))
    for panel in json.loads(path.read_text())["panels"]
    for target in panel.get("targets", ())
]


LABEL = re.compile(r"{{ \$labels\.(\w+) }}")
PAGE = Path(__file__).parents[4] / "docs" / "how-to" / "alerts.md"
ALERTS = [rule for group in yaml.safe_load((HERE / "alerts.yml").read_text())["groups"] for rule in group["rules"]]
RULES = [
    pytest.param(rule["expr"], " ".join(f"{{{{{label}}}}}" for label in LABEL.findall(rule["annotations"]["summary"])), id=rule["alert"])
    for rule in ALERTS
    if "evenflow_job" not in rule["annotations"]["summary"]
]
"""The alerts about what a job tells: the expression, and the labels that the summary names, as a legend."""


class Answers:
    """Asks a job's runtime. Its sources have splits, as those of Kafka have."""

    def __init__(self, runtime):
        self.runtime = runtime

    def ask(self, request):
        answer = self.runtime.ask(request)
        if isinstance(request, ShowFigures):
            return [replace(figures, splits=(SplitProgress("topic-0", lag=3, newest=as_datetime(5)),)) for figures in answer]
        return answer


@pytest.fixture(scope="module")
def scraped():
    """Labels by sample, of a job in which everything has happened once that is counted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.sleep", threading.Event().wait)
        flow = ef.Dataflow("shop")
        numbers = flow.read(ef.generate(rate=2_000, keys=50, max_delay="1s"))
        numbers.key_by("key").aggregate(n=ef.count()).named("count").write(ef.to_list([]))
        autoscale = ef.AutoscaleConfig(ef.ThresholdPolicy(scale_down_delay="100ms"), mode="advise", interval="50ms")
        job = flow.run(
            runtime="local",
            parallelism=2,
            config=ef.JobConfig(metrics=ef.MetricsConfig(window="50ms", latency_interval="20ms"), autoscale=autoscale),
        )
        collector = JobCollector("shop", Answers(job._runtime))
        registry = CollectorRegistry()
        job.checkpoint()
        job.migrate("count", groups=[1], to=1)
        job.scale("count", 3)
        collector.note_state(JobState.RESTARTING, 1.0)
        collector.note_state(JobState.RUNNING, 3.0)
        registry.register(collector)
        for _ in range(round(patience(1200))):
            samples = [s for family in text_string_to_metric_families(generate_latest(registry).decode()) for s in family.samples]
            names = {sample.name for sample in samples}
            if {"evenflow_decisions_total", "evenflow_record_latency_seconds_bucket", "evenflow_watermark_seconds"} <= names:
                break
            threading.Event().wait(0.05)
        job.cancel()
        job.wait("30s")
    return {sample.name: frozenset(sample.labels) for sample in samples}, samples


@pytest.mark.parametrize(("expression", "legend"), QUERIES)
def test_a_query_asks_for_metrics_that_a_job_exports(expression, legend, scraped):
    assert missing(expression, legend, scraped[0]) == []


@pytest.mark.parametrize(("expression", "legend"), RULES)
def test_an_alert_asks_for_metrics_that_a_job_exports(expression, legend, scraped):
    assert metrics_of(expression)
    assert missing(expression, legend, scraped[0]) == []


def test_the_page_on_alerts_says_what_every_alert_means():
    listed = re.findall(r"^\| `(Evenflow\w+)` \|", PAGE.read_text(), re.MULTILINE)
    assert listed == [rule["alert"] for rule in ALERTS]


def test_an_event_is_counted_once_however_often_it_is_read(scraped):
    values = {(sample.name, *sample.labels.values()): sample.value for sample in scraped[1]}
    assert values["evenflow_checkpoints_total", "shop", "complete"] >= 1
    assert values["evenflow_scalings_total", "shop", "count", "done"] == 1
    assert [values["evenflow_upgrades_total", "shop", state] for state in ("done", "rolled back")] == [0, 0]
    assert values["evenflow_migrations_total", "shop", "count", "done"] == values["evenflow_migration_seconds_count", "shop", "count"]
    assert values["evenflow_recovery_seconds_count", "shop"] == 1
    assert values["evenflow_restarts_total", "requested", "shop"] == 0
    assert values["evenflow_source_lag_records", "shop", "generate"] >= 0
    assert values["evenflow_no_progress_seconds", "shop"] < patience(60)
    assert values["evenflow_job_state", "shop", "running"] == 1
    assert values["evenflow_recovery_seconds_sum", "shop"] == 2.0


def test_labels_are_those_of_the_plan_and_of_few_states(scraped):
    labels = {label for _, labels in scraped[0].items() for label in labels}
    assert labels == {"job", "operator", "worker", "split", "quantile", "le", "state", "policy", "outcome", "cause"}


@pytest.mark.parametrize(
    ("expression", "legend", "wrong"),
    [
        ('sum by (job) (evenflow_rows{job=~"$job"})', "", ["evenflow_rows"]),
        ('sum by (job, node) (evenflow_rows_in_total{job=~"$job"})', "", ["evenflow_rows_in_total{node}"]),
        ('evenflow_rows_in_total{job=~"$job", host!="a"}', "", ["evenflow_rows_in_total{host}"]),
        ("evenflow_rows_in_total", "{{host}}", ["evenflow_rows_in_total{host}"]),
    ],
)
def test_a_query_of_a_missing_metric_is_found(expression, legend, wrong):
    assert missing(expression, legend, {"evenflow_rows_in_total": {"job", "worker"}}) == wrong


def test_metrics_and_labels_are_read_out_of_a_query():
    query = 'histogram_quantile(0.5, sum by (le, job) (rate(evenflow_a_bucket{job=~"$job", state="x"}[$__rate_interval])))'
    assert metrics_of(query) == {"evenflow_a_bucket"}
    assert labels_of(query, "{{job}}") == {"le", "job", "state"}


def test_the_command_writes_dashboards_and_the_configuration(tmp_path, capsys):
    assert main(["grafana", "--output", str(tmp_path / "grafana")]) == 0
    assert "wrote" in capsys.readouterr().out
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()} == {
        "grafana/dashboards/evenflow-job.json", "grafana/dashboards/evenflow-cluster.json", "grafana/prometheus.yml",
        "grafana/alerts.yml",
    }  # fmt: skip
    board = json.loads((tmp_path / "grafana/dashboards/evenflow-job.json").read_text())
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"]) > 15
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in board["panels"]]
    assert len(set(places)) == len(places)


def test_the_targets_are_the_ports_where_jobs_export_their_metrics(tmp_path, monkeypatch):
    monkeypatch.setattr("evenflow.cli.grafana.metrics_addresses", lambda: {"shop": "http://127.0.0.1:9400/metrics"})
    assert main(["grafana", "--output", str(tmp_path), "--targets"]) == 0
    assert json.loads((tmp_path / "targets.json").read_text()) == [
        {"targets": ["127.0.0.1:9400"], "labels": {"job": "shop", "evenflow_job": "shop"}}
    ]


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["grafana", "--output", str(tmp_path / "file")]) == 1
    assert "can't be written" in capsys.readouterr().err
