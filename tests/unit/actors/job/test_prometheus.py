from __future__ import annotations

import socket
from urllib.request import urlopen

import evenflow as ef
from evenflow.actors.job.prometheus import MetricsServer
from evenflow.engine.functions.measures import Measured
from evenflow.engine.source import SplitFigures
from evenflow.scheduler.load.metrics import JobMetrics
from evenflow.scheduler.load.window import WorkerWindow
from evenflow.scheduler.protocol.effects import JobState
from evenflow.scheduler.protocol.requests import ShowFigures
from evenflow.scheduler.protocol.status import JobStatus
from evenflow.scheduler.protocol.view import JobView


class Job:
    def __init__(self, metrics, status):
        self.metrics, self.status = metrics, status

    def ask(self, request):
        return self.metrics.workers() if isinstance(request, ShowFigures) else JobView(1.0, self.status, (), ())


def served_by(server):
    try:
        with urlopen(server.url) as answer:
            return answer.read().decode().splitlines()
    finally:
        server.close(JobState.FINISHED)


def test_splits_of_a_source_are_served_with_their_lag_and_time():
    metrics = JobMetrics({"read-0": "read"})
    splits = (SplitFigures("0", lag=7, newest=2_500_000), SplitFigures("1", idle=True))
    metrics.add(WorkerWindow("read-0", 0.0, 1.0, splits=splits, watermark=400_000))
    status = JobStatus("job", JobState.RUNNING, None, ("read-0",), 0, 1.0)

    server = MetricsServer("job", ef.MetricsConfig(), Job(metrics, status))
    lines = served_by(server)
    names = 'job="job",operator="read",split="{}",worker="read-0"'
    served = {line for line in lines if line.startswith("evenflow_split_")}
    assert served == {
        f"evenflow_split_lag{{{names.format(0)}}} 7.0",
        f"evenflow_split_newest_seconds{{{names.format(0)}}} 2.5",
        f"evenflow_split_idle{{{names.format(0)}}} 0.0",
        f"evenflow_split_idle{{{names.format(1)}}} 1.0",
    }
    assert 'evenflow_watermark_lag_seconds{job="job",operator="read"} 0.6' in lines


def test_metrics_of_functions_are_served_by_name():
    metrics = JobMetrics({"price-0": "price"})
    measured = (
        Measured("price", "rejected", "counter", 3.0),
        Measured("price", "cached", "gauge", -2.5),
        Measured("rate", "seconds", "histogram", 7.5, (0.1, 1.0), (1, 0, 2)),
    )
    metrics.add(WorkerWindow("price-0", 0.0, 1.0, measured=measured))
    status = JobStatus("job", JobState.RUNNING, None, ("price-0",), 0, 1.0)
    lines = served_by(MetricsServer("job", ef.MetricsConfig(), Job(metrics, status)))
    names = 'job="job",name="{}",operator="{}",worker="price-0"'
    buckets = {
        f'evenflow_function_histogram_bucket{{job="job",le="{bound}",name="seconds",operator="rate",worker="price-0"}} {count}.0'
        for bound, count in (("0.1", 1), ("1.0", 1), ("+Inf", 3))
    }
    assert {line for line in lines if line.startswith("evenflow_function_")} == {
        f"evenflow_function_counter_total{{{names.format('rejected', 'price')}}} 3.0",
        f"evenflow_function_gauge{{{names.format('cached', 'price')}}} -2.5",
        f"evenflow_function_histogram_count{{{names.format('seconds', 'rate')}}} 3.0",
        f"evenflow_function_histogram_sum{{{names.format('seconds', 'rate')}}} 7.5",
        *buckets,
    }


def test_a_restart_loop_is_in_the_metrics_from_its_first_attempt():
    status = JobStatus("job", JobState.RESTARTING, None, ("read-0",), 0, 0.0, restarts=41, restart_causes={"StateFolderError": 41})
    lines = served_by(MetricsServer("job", ef.MetricsConfig(), Job(JobMetrics({"read-0": "read"}), status)))
    assert 'evenflow_restarts_total{cause="StateFolderError",job="job"} 41.0' in lines
    assert 'evenflow_restarts_total{cause="JobLostError",job="job"} 0.0' in lines
    assert 'evenflow_job_state{job="job",state="restarting"} 1.0' in lines
    assert 'evenflow_job_state{job="job",state="running"} 0.0' in lines
    assert 'evenflow_checkpoints_total{job="job",state="complete"} 0.0' in lines
    assert 'evenflow_checkpoint_age_seconds{job="job"} 0.0' in lines


def test_a_port_that_is_taken_is_a_problem_and_metrics_are_served_on_another():
    status = JobStatus("job", JobState.RUNNING, None, ("read-0",), 0, 1.0)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server = MetricsServer("job", ef.MetricsConfig(port=port), Job(JobMetrics({"read-0": "read"}), status))
        assert served_by(server)
    other = int(server.url.split(":")[2].partition("/")[0])
    assert other != port
    problem = (
        f"metrics port {port} can't be used: Address already in use; metrics are on port {other}, "
        "and MetricsConfig(port=0) always takes a free one"
    )
    assert server.problems == [problem]
