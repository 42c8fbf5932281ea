"""The Prometheus endpoint of a job: every worker's figures at the time of a scrape, and counts of the job's events so far."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from ...engine.errors import shown
from ...scheduler.configs.run import LOOPBACK, MetricsConfig
from ...scheduler.job.view_cursor import ViewCursor
from ...scheduler.load.metrics import WorkerFigures
from ...scheduler.protocol.effects import JobState
from ...scheduler.protocol.failures import REQUESTED
from ...scheduler.protocol.requests import Responder, ShowFigures, ShowLoad, ShowView
from .metrics_http import MetricsHttp, is_loopback, reachable
from .tally import Distribution, Tally
from .target_file import TargetFile
from .tracing import Tracing, tracing

_LABELS = ["job", "operator", "worker"]
_COUNTERS = {
    "rows_in": "Records that the worker took",
    "rows_out": "Records that the worker sent",
    "late_records": "Records that came after their windows were emitted",
    "skipped_records": "Records that users' functions refused or sources could not decode, and that on_error dropped",
    "refused_messages": "Malformed messages on the worker's sockets, and connections of strangers",
}
_GAUGES = {
    "rows_in_per_second": "Records taken per second in the last window",
    "rows_out_per_second": "Records sent per second in the last window",
    "useful_share": "Share of the last window spent deserialising, processing and serialising",
    "input_wait_share": "Share of the last window spent waiting for input",
    "backpressure": "Share of the last window spent waiting for credit",
    "queued_batches": "Batches received and not yet processed",
    "state_bytes": "Estimated bytes of keyed state",
}

_KINDS = (
    ("checkpoint", "Checkpoints", True),
    ("migration", "Moves of keys", False),
    ("scaling", "Scalings of operators", False),
    ("upgrade", "Upgrades of the code while the job ran", True),
)
"""The kinds of operations that are counted; those of the last column concern the whole job, and have no operator."""

NEWEST = 5
"""Windows over which the imbalance and its floor are computed."""

LOOK_EVERY = 5.0
"""Seconds after which the tally is updated without a scrape: a job remembers only its newest windows and reports."""


NONE_YET = {
    ("checkpoint", "", "complete"): 0,
    ("checkpoint", "", "failed"): 0,
    ("upgrade", "", "done"): 0,
    ("upgrade", "", "rolled back"): 0,
}
"""Counters that begin at 0, so that alerts can refer to events that have not happened yet."""

NO_RESTARTS = dict.fromkeys(
    (REQUESTED, "ConnectorError", "JobFailedError", "JobLostError", "RecordError", "StateBackendError", "StoreUnavailableError"), 0
)
"""The usual causes of restarts."""


class MetricsServer:
    """The endpoint of one job. Raises OSError if its host or certificate can't be used, or there is no free port.

    `node`: the address of this machine for others. `problems`: what isn't as the settings say, such as another port; `warning`:
    a risk of these settings.
    """

    def __init__(self, job: str, config: MetricsConfig, responder: Responder, node: str = LOOPBACK) -> None:
        self.collector = JobCollector(job, responder, tracing(job))
        self.problems: list[str] = []
        registry = CollectorRegistry()
        registry.register(self.collector)
        try:
            self._server = MetricsHttp(config, config.port, registry)
        except OSError as error:
            if error.errno != errno.EADDRINUSE and not (isinstance(error, PermissionError) and config.port):
                raise
            self._server = MetricsHttp(config, 0, registry)
            self.problems.append(
                f"metrics port {config.port} can't be used: {error.strerror}; metrics are on port {self._server.server_port}, and "
                "MetricsConfig(port=0) always takes a free one"
            )
        address = f"{reachable(config.host, node)}:{self._server.server_port}"
        self.url = f"{'http' if config.certificate is None else 'https'}://{address}/metrics"
        self.warning: str | None = None
        if not is_loopback(config.host) and config.token is None and config.certificate is None:
            self.warning = (
                f"everyone who reaches {address} can read the metrics: MetricsConfig(token=...) asks for a token, certificate= "
                "encrypts, and host='127.0.0.1' keeps them on this machine"
            )
        self._target = None if config.discovery is None else TargetFile(config.discovery, job)
        if self._target is not None:
            try:
                self._target.write(self.url)
            except OSError as error:
                self.problems.append(f"Prometheus can't discover the metrics: {shown(error)}")

    def close(self, state: JobState) -> None:
        """Stop serving; `state` is the job's last."""
        self._server.close()
        self.collector.close()
        if self._target is not None and state is not JobState.FAILED:
            self._target.remove()


class JobCollector(Collector):
    """The metrics of a job. Its interpreter calls `note_state`, its clock `update`, scrapes `collect`. `traces`: the destination of
    spans, if any.
    """

    def __init__(self, job: str, responder: Responder, traces: Tracing | None = None) -> None:
        self._job, self._responder, self._traces = job, responder, traces
        self._cursor, self._tally = ViewCursor(), Tally()
        self._looking = threading.Lock()
        self._looked = 0.0

    def note_state(self, state: JobState, now: float) -> None:
        """Note that the job's state has changed at time `now`, in seconds since the epoch."""
        self._tally.note_state(state, now)
        if self._traces is not None:
            self._traces.note_state(state, now)

    def update(self, now: float) -> None:
        """Add the news of the job to the tally every few seconds: a job remembers only its newest."""
        if now - self._looked > LOOK_EVERY:
            self._look()

    def collect(self) -> Iterator[Metric]:
        """Yield the same families at every scrape; those of events that have not happened are empty."""
        keyed, now = self._look()
        workers = self._responder.ask(ShowFigures())
        for name, text in _COUNTERS.items():
            counter = CounterMetricFamily(f"evenflow_{name}", text, labels=_LABELS)
            for worker in workers:
                counter.add_metric([self._job, worker.operator, worker.worker], getattr(worker, name))
            yield counter
        for name, text in _GAUGES.items():
            gauge = GaugeMetricFamily(f"evenflow_{name}", text, labels=_LABELS)
            for worker in workers:
                gauge.add_metric([self._job, worker.operator, worker.worker], getattr(worker, name))
            yield gauge
        yield from self._watermarks(workers, now)
        yield from self._splits(workers)
        yield self._latency(workers)
        yield from self._of_functions(workers)
        yield from self._evenness(keyed)
        yield from self._happened()

    def close(self) -> None:
        """Send the last spans of the job, which has ended."""
        if self._traces is not None:
            self._look()
            self._traces.close()

    def _look(self) -> tuple[list[str], float]:
        """Add the news to the tally; return the operators that have keyed state, and the time of the job."""
        with self._looking:
            view = self._responder.ask(ShowView(self._cursor.since))
            news = self._cursor.advance(view)
            self._tally.add(view, news)
            if self._traces is not None:
                self._traces.add(view, news)
            self._looked = view.now
        return [stage.name for stage in view.stages if stage.table is not None], view.now

    def _evenness(self, keyed: list[str]) -> Iterator[Metric]:
        uneven = GaugeMetricFamily("evenflow_imbalance", "Load of the hottest worker over the mean", labels=["job", "operator"])
        least = "The least imbalance of any placement of whole keys"
        floor = GaugeMetricFamily("evenflow_imbalance_floor", least, labels=["job", "operator"])
        for operator in keyed:
            load = self._responder.ask(ShowLoad(operator, NEWEST))
            uneven.add_metric([self._job, operator], load.imbalance)
            floor.add_metric([self._job, operator], load.floor)
        yield from (uneven, floor)

    def _happened(self) -> Iterator[Metric]:
        tally = self._tally
        job, operators = ["job"], ["job", "operator"]
        restarted = "How often the job was restored from its last checkpoint, by the class of the error, or `requested`"
        restarts = CounterMetricFamily("evenflow_restarts", restarted, labels=[*job, "cause"])
        for cause, count in {**NO_RESTARTS, **tally.restarts}.items():
            restarts.add_metric([self._job, cause], count)
        yield restarts
        states = GaugeMetricFamily("evenflow_job_state", "1 for the state that the job is in, 0 for the others", labels=[*job, "state"])
        for one in JobState:
            states.add_metric([self._job, one.value], float(one is tally.state))
        yield states
        age = "Seconds since the newest complete checkpoint, or since the coordinator began if there is none"
        newest = GaugeMetricFamily("evenflow_checkpoint_age_seconds", age, labels=job)
        newest.add_metric([self._job], tally.checkpoint_age)
        yield newest
        wanted = "Seconds between two checkpoints by the job's settings; none if it takes one at its end only"
        interval = GaugeMetricFamily("evenflow_checkpoint_interval_seconds", wanted, labels=job)
        if tally.checkpoint_interval is not None:
            interval.add_metric([self._job], tally.checkpoint_interval)
        yield interval
        size = GaugeMetricFamily("evenflow_checkpoint_size_bytes", "All files of the newest complete checkpoint", labels=job)
        size.add_metric([self._job], tally.checkpoint_size)
        yield size
        saved = CounterMetricFamily("evenflow_checkpoint_saved_bytes", "Bytes of state written for checkpoints", labels=job)
        saved.add_metric([self._job], tally.checkpoint_saved)
        yield saved
        still = "Seconds since the job last took or sent rows or completed a checkpoint"
        progress = GaugeMetricFamily("evenflow_no_progress_seconds", still, labels=job)
        progress.add_metric([self._job], tally.no_progress_seconds)
        yield progress
        lasted = "Seconds for which the cause has lasted for which the job stands still, 0 if it is none"
        waits = GaugeMetricFamily("evenflow_waits_seconds", lasted, labels=[*job, "cause"])
        for wait, seconds in tally.waits.items():
            waits.add_metric([self._job, wait.value], seconds)
        yield waits
        yield from self._source_lags()
        yield self._histogram("recovery_seconds", "From a failure to all workers running again", job, {"": tally.recovery_seconds})
        yield self._histogram("checkpoint_seconds", "How long checkpoints took", job, {"": tally.checkpoint_seconds})
        yield self._histogram("migration_seconds", "How long moves of keys took", operators, tally.migration_seconds)
        yield self._histogram(
            "record_latency_seconds", "Latency of marks from the source to the end of the stream", operators, tally.latencies
        )
        for kind, text, whole in _KINDS:
            labels = ["job", *([] if whole else ["operator"]), "state"]
            counter = CounterMetricFamily(f"evenflow_{kind}s", f"{text} that have ended, by outcome", labels=labels)
            for (which, operator, state), count in {**NONE_YET, **tally.ended}.items():
                if which == kind:
                    counter.add_metric([self._job, *([] if whole else [operator]), state], count)
            yield counter
        decisions = CounterMetricFamily("evenflow_decisions", "Decisions of scaling policies", labels=["job", "policy", "outcome"])
        for (policy, outcome), count in tally.decisions.items():
            decisions.add_metric([self._job, policy, outcome], count)
        yield decisions

    def _histogram(self, name: str, text: str, labels: list[str], found: Mapping[str, Distribution]) -> Metric:
        histogram = HistogramMetricFamily(f"evenflow_{name}", text, labels=labels)
        for operator, distribution in found.items():
            histogram.add_metric([self._job, operator][: len(labels)], distribution.buckets(), distribution.sum)
        return histogram

    def _watermarks(self, workers: list[WorkerFigures], now: float) -> Iterator[Metric]:
        marks = GaugeMetricFamily("evenflow_watermark_seconds", "Event time of the worker, in seconds", labels=_LABELS)
        behind = "The clock less the lowest event time of the operator's workers; tells a delay if events are timed by the clock"
        lag = GaugeMetricFamily("evenflow_watermark_lag_seconds", behind, labels=["job", "operator"])
        lowest: dict[str, float] = {}
        for worker in workers:
            if worker.watermark is not None:
                mark = worker.watermark.timestamp()
                marks.add_metric([self._job, worker.operator, worker.worker], mark)
                lowest[worker.operator] = min(mark, lowest.get(worker.operator, mark))
        for operator, mark in lowest.items():
            lag.add_metric([self._job, operator], now - mark)
        yield from (marks, lag)

    def _source_lags(self) -> Iterator[Metric]:
        labels = ["job", "operator"]
        records = GaugeMetricFamily("evenflow_source_lag_records", "Available records that the source has not read", labels=labels)
        waited = "Seconds since the oldest record that the source has not read became available, at least"
        seconds = GaugeMetricFamily("evenflow_source_lag_seconds", waited, labels=labels)
        for operator, lag in self._tally.source_lags.items():
            records.add_metric([self._job, operator], lag.records)
            seconds.add_metric([self._job, operator], lag.seconds)
        yield from (records, seconds)

    def _splits(self, workers: list[WorkerFigures]) -> Iterator[Metric]:
        labels = [*_LABELS, "split"]
        lag = GaugeMetricFamily("evenflow_split_lag", "Records of a source's split that are not read yet", labels=labels)
        newest = GaugeMetricFamily("evenflow_split_newest_seconds", "Newest event time read of a source's split", labels=labels)
        idle = GaugeMetricFamily("evenflow_split_idle", "1 if a source's split is quiet and holds no event time back", labels=labels)
        for worker in workers:
            for split in worker.splits:
                names = [self._job, worker.operator, worker.worker, split.split]
                idle.add_metric(names, float(split.idle))
                if split.lag is not None:
                    lag.add_metric(names, split.lag)
                if split.newest is not None:
                    newest.add_metric(names, split.newest.timestamp())
        yield from (lag, newest, idle)

    def _of_functions(self, workers: list[WorkerFigures]) -> Iterator[Metric]:
        labels = [*_LABELS, "name"]
        counter = CounterMetricFamily("evenflow_function_counter", "Counters of users' functions, by their `name`", labels=labels)
        gauge = GaugeMetricFamily("evenflow_function_gauge", "Gauges of users' functions, by their `name`", labels=labels)
        histogram = HistogramMetricFamily("evenflow_function_histogram", "Histograms of users' functions, by their `name`", labels=labels)
        for worker in workers:
            for one in worker.measured:
                names = [self._job, one.operator, worker.worker, one.name]
                if one.kind == "histogram":
                    histogram.add_metric(names, one.buckets(), one.value)
                else:
                    (counter if one.kind == "counter" else gauge).add_metric(names, one.value)
        yield from (counter, gauge, histogram)

    def _latency(self, workers: list[WorkerFigures]) -> Metric:
        gauge = GaugeMetricFamily("evenflow_latency_seconds", "Latency from source to here", labels=[*_LABELS, "quantile"])
        for worker in workers:
            for quantile, value in zip(("0.5", "0.99"), worker.latency_ms or (), strict=False):
                gauge.add_metric([self._job, worker.operator, worker.worker, quantile], value / 1000)
        return gauge
