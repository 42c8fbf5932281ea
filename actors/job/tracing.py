"""Sending of a job's spans to an OpenTelemetry collector, if its environment names one.

Without OTEL_EXPORTER_OTLP_ENDPOINT nothing of OpenTelemetry is imported. A thread of the SDK sends the spans, so a collector that is
slow or unreachable costs the job nothing but those spans. The SDK reads its own variables (headers, certificates, service name).
"""

from __future__ import annotations

import logging
import os
import threading
from typing import TYPE_CHECKING, Any

from ...scheduler.job.view_cursor import ViewNews
from ...scheduler.protocol.effects import JobState
from ...scheduler.protocol.view import JobView
from .spans import Attributes, JobSpan, Spans

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

_LOG = logging.getLogger(__name__)

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")

PREFIX = "OTEL_"
"""The prefix of all variables that the SDK reads."""

PATIENCE = 10.0
"""Seconds for the last spans, once the job has ended: as long as the SDK tries to send a batch."""


def variables() -> dict[str, str]:
    """Return this process's variables for OpenTelemetry, which its jobs' coordinators get; none if no endpoint is set."""
    if not any(os.environ.get(name) for name in ENDPOINTS):
        return {}
    return {name: value for name, value in os.environ.items() if name.startswith(PREFIX)}


class Tracing:
    """A connection to a collector for the spans of one job."""

    def __init__(self, job: str, provider: TracerProvider) -> None:
        self._job, self._provider = job, provider
        self._tracer = provider.get_tracer("evenflow")
        self._spans = Spans()

    def note_state(self, state: JobState, now: float) -> None:
        """Note that the job's state has changed at time `now`."""
        self._spans.note_state(state, now)

    def add(self, view: JobView, news: ViewNews) -> None:
        """Send the spans of a view's news soon."""
        for span in self._spans.add(view, news):
            self._send(span)

    def close(self, patience: float = PATIENCE) -> None:
        """Send the remaining spans, for `patience` seconds at most; log a warning if that is too short."""
        ending = threading.Thread(target=self._provider.shutdown, name=f"{self._job}/traces", daemon=True)
        ending.start()
        ending.join(patience)
        if ending.is_alive():
            _LOG.warning("job `%s`: its last spans are lost: the collector did not accept them within %g s", self._job, patience)

    def _send(self, span: JobSpan) -> None:
        from opentelemetry.trace import Status, StatusCode

        otel_span = self._tracer.start_span(
            span.name, attributes=self._named({"job": self._job, **span.attributes}), start_time=_ns(span.begin)
        )
        for event in span.events:
            otel_span.add_event(event.name, self._named(event.attributes), _ns(event.time))
        if span.problem is not None:
            otel_span.set_status(Status(StatusCode.ERROR, span.problem))
        otel_span.end(_ns(span.end))

    @staticmethod
    def _named(attributes: Attributes) -> dict[str, Any]:
        """Prefix our own names; keep those that OpenTelemetry defines."""
        return {name if name.startswith("exception.") else f"evenflow.{name}": value for name, value in attributes.items()}


def tracing(job: str) -> Tracing | None:
    """Connect to the collector; None if no endpoint is set, or the packages are missing, which logs a warning."""
    if not variables():
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        _LOG.warning("job `%s`: %s is set, but there are no traces: pip install 'evenflow[otel]' (%s)", job, ENDPOINTS[0], error)
        return None
    named = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": "evenflow"}
    provider = TracerProvider(resource=Resource.create(named), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Tracing(job, provider)


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)
