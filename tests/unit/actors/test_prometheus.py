from __future__ import annotations

from urllib.request import urlopen

from evenflow.actors.job.prometheus import MetricsServer
from evenflow.engine.source import SplitFigures
from evenflow.scheduler.job.effects import JobState
from evenflow.scheduler.job.requests import ShowFigures
from evenflow.scheduler.job.status import JobStatus
from evenflow.scheduler.job.view import JobView
from evenflow.scheduler.load.metrics import JobMetrics
from evenflow.scheduler.load.window import WorkerWindow


def test_splits_of_a_source_are_served_with_their_lag_and_time():
    metrics = JobMetrics({"read-0": "read"})
    splits = (SplitFigures("0", lag=7, newest=2_500_000), SplitFigures("1", idle=True))
    metrics.add(WorkerWindow("read-0", 0.0, 1.0, splits=splits))
    status = JobStatus("job", JobState.RUNNING, None, ("read-0",), 0, 1.0)

    class Job:
        def ask(self, request):
            return metrics.workers() if isinstance(request, ShowFigures) else JobView(1.0, status, (), ())

    server = MetricsServer("job", 0, Job())
    try:
        with urlopen(server.url) as answer:
            lines = answer.read().decode().splitlines()
    finally:
        server.close()

    names = 'job="job",operator="read",split="{}",worker="read-0"'
    served = {line for line in lines if line.startswith("evenflow_split_")}
    assert served == {
        f"evenflow_split_lag{{{names.format(0)}}} 7.0",
        f"evenflow_split_newest_seconds{{{names.format(0)}}} 2.5",
        f"evenflow_split_idle{{{names.format(0)}}} 0.0",
        f"evenflow_split_idle{{{names.format(1)}}} 1.0",
    }
