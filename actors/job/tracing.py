"""Sends the spans of a job to an OpenTelemetry collector, if its environment names one.

Without OTEL_EXPORTER_OTLP_ENDPOINT nothing of OpenTelemetry is imported. Spans are sent by a thread of the SDK's, so a collector that is
slow or gone costs the job nothing but those spans. The variables that the SDK knows (headers, certificates, service name) hold.
"""

from __future__ import annotations

import logging
import os
import threading
from typing import TYPE_CHECKING, Any

from ...scheduler.protocol.effects import JobState
from ...scheduler.protocol.view import JobView
from .spans import Attributes, JobSpan, Spans

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

_LOG = logging.getLogger(__name__)

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")

PREFIX = "OTEL_"
"""Of all variables that the SDK reads."""

PATIENCE = 2.0
"""Seconds for the last spans, once the job has ended."""


def variables() -> dict[str, str]:
    """Those of this process for OpenTelemetry, which its jobs' coordinators get; none if no endpoint is set."""
    if not any(os.environ.get(name) for name in ENDPOINTS):
        return {}
    return {name: value for name, value in os.environ.items() if name.startswith(PREFIX)}


class Tracing:
    """Of the job of that name."""

    def __init__(self, job: str, provider: TracerProvider) -> None:
        self._job, self._provider = job, provider
        self._tracer = provider.get_tracer("evenflow")
        self._spans = Spans()

    def passes(self, state: JobState, now: float) -> None:
        """The job is in this state at time `now`."""
        self._spans.passes(state, now)

    def add(self, view: JobView) -> None:
        """What is over since the view before is sent soon."""
        for span in self._spans.add(view):
            self._send(span)

    def close(self) -> None:
        """Send what is left, for `PATIENCE` at most."""
        ending = threading.Thread(target=self._provider.shutdown, name=f"{self._job}/traces", daemon=True)
        ending.start()
        ending.join(PATIENCE)

    def _send(self, span: JobSpan) -> None:
        from opentelemetry.trace import Status, StatusCode

        sent = self._tracer.start_span(span.name, attributes=self._named({"job": self._job, **span.attributes}), start_time=_ns(span.begin))
        for event in span.events:
            sent.add_event(event.name, self._named(event.attributes), _ns(event.time))
        if span.problem is not None:
            sent.set_status(Status(StatusCode.ERROR, span.problem))
        sent.end(_ns(span.end))

    @staticmethod
    def _named(attributes: Attributes) -> dict[str, Any]:
        """Our own names with a prefix; those that OpenTelemetry defines as they are."""
        return {name if name.startswith("exception.") else f"evenflow.{name}": value for name, value in attributes.items()}


def tracing(job: str) -> Tracing | None:
    """None if no endpoint is set, or the packages are missing, which is a warning."""
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
