"""The Prometheus endpoint of a job: every worker's figures, read when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ...engine.errors import ClusterError
from ...scheduler.load.metrics import WorkerFigures

_LABELS = ["job", "operator", "worker"]
_COUNTERS = {
    "rows_in": "Records that the worker took",
    "rows_out": "Records that the worker sent",
    "late_records": "Records that came after their windows were emitted",
    "skipped_records": "Records that users' functions refused, or sources could not decode, and on_error left out",
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


class MetricsServer:
    """Serves on loopback. Raises ClusterError if the port is taken; port 0 takes any free one."""

    def __init__(self, job: str, port: int, figures: Callable[[], list[WorkerFigures]]) -> None:
        registry = CollectorRegistry()
        registry.register(JobCollector(job, figures))
        try:
            self._server, self._thread = start_http_server(port, addr="127.0.0.1", registry=registry)
        except OSError as error:
            raise ClusterError(
                f"job `{job}`: metrics port {port} can't be used: {error.strerror}; MetricsConfig(port=0) takes any"
            ) from error
        self.url = f"http://127.0.0.1:{self._server.server_port}/metrics"

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=5)


class JobCollector(Collector):
    """All metrics of a job; `figures` gives those of its workers at the moment."""

    def __init__(self, job: str, figures: Callable[[], list[WorkerFigures]]) -> None:
        self._job, self._figures = job, figures

    def collect(self) -> Iterator[Metric]:
        workers = self._figures()
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
        yield self._watermarks(workers)
        yield from self._splits(workers)
        yield self._latency(workers)

    def _watermarks(self, workers: list[WorkerFigures]) -> Metric:
        gauge = GaugeMetricFamily("evenflow_watermark_seconds", "Event time that the worker has reached, seconds", labels=_LABELS)
        for worker in workers:
            if worker.watermark is not None:
                gauge.add_metric([self._job, worker.operator, worker.worker], worker.watermark / 1e6)
        return gauge

    def _splits(self, workers: list[WorkerFigures]) -> Iterator[Metric]:
        labels = [*_LABELS, "split"]
        lag = GaugeMetricFamily("evenflow_split_lag", "Records of a source's split that are there and were not read", labels=labels)
        newest = GaugeMetricFamily("evenflow_split_newest_seconds", "Newest event time read of a source's split", labels=labels)
        idle = GaugeMetricFamily("evenflow_split_idle", "Whether a source's split is quiet and holds no event time back", labels=labels)
        for worker in workers:
            for split in worker.splits:
                names = [self._job, worker.operator, worker.worker, split.split]
                idle.add_metric(names, float(split.idle))
                if split.lag is not None:
                    lag.add_metric(names, split.lag)
                if split.newest is not None:
                    newest.add_metric(names, split.newest / 1e6)
        yield from (lag, newest, idle)

    def _latency(self, workers: list[WorkerFigures]) -> Metric:
        gauge = GaugeMetricFamily("evenflow_latency_seconds", "Latency from source to here", labels=[*_LABELS, "quantile"])
        for worker in workers:
            for quantile, value in zip(("0.5", "0.99"), worker.latency_ms or (), strict=False):
                gauge.add_metric([self._job, worker.operator, worker.worker, quantile], value / 1000)
        return gauge
