"""The endpoint for Prometheus: who may read it, by TLS or not, and where others find it."""

from __future__ import annotations

import json
import socket
import ssl
from dataclasses import replace
from http.client import RemoteDisconnected
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest
from certificates import trusting, write_certificate
from patience import patience
from prometheus_client.parser import text_string_to_metric_families

import evenflow as ef
from evenflow.actors.job.metrics_http import Certificate
from evenflow.actors.job.prometheus import MetricsServer
from evenflow.scheduler.load.metrics import JobMetrics
from evenflow.scheduler.protocol.effects import JobState
from evenflow.scheduler.protocol.requests import ShowFigures
from evenflow.scheduler.protocol.status import JobStatus
from evenflow.scheduler.protocol.view import JobView


class Job:
    def ask(self, request):
        status = JobStatus("job", JobState.RUNNING, None, ("read-0",), 0, 1.0)
        return JobMetrics({"read-0": "read"}).workers() if isinstance(request, ShowFigures) else JobView(1.0, status, (), ())


@pytest.fixture
def serve():
    """Provide a function that serves the metrics of a job named `clicks` with such settings until the test has ended."""
    servers = []

    def served(**settings):
        servers.append(MetricsServer("clicks", ef.MetricsConfig(**settings), Job(), node="127.0.0.1"))
        return servers[-1]

    yield served
    for server in servers:
        server.close(JobState.FINISHED)


def read(url, context=None, **headers):
    """Return the names of the families at the address."""
    with urlopen(Request(url, headers=headers), timeout=patience(20), context=context) as answer:
        return {family.name for family in text_string_to_metric_families(answer.read().decode())}


def refused(url, **headers):
    with pytest.raises(HTTPError) as raised:
        read(url, **headers)
    with raised.value as answer:
        return answer.code, answer.headers["WWW-Authenticate"], answer.read()


def test_default_is_loopback_without_a_warning(serve):
    server = serve()
    assert server.url.startswith("http://127.0.0.1:")
    assert (server.warning, server.problems) == (None, [])
    assert "evenflow_job_state" in read(server.url)


def test_address_is_the_nodes_and_an_open_endpoint_is_warned_of_with_what_to_do(serve):
    server = serve(host="0.0.0.0")
    assert server.url.startswith("http://127.0.0.1:"), "the node's address, which others reach"
    assert "evenflow_job_state" in read(server.url)
    assert "MetricsConfig(token=...) asks for a token" in server.warning


def test_token_is_asked_for_and_read_by_no_one_else(serve):
    server = serve(host="0.0.0.0", token="s3cret")
    assert server.warning is None
    assert "evenflow_job_state" in read(server.url, Authorization="Bearer s3cret")
    assert "evenflow_job_state" in read(server.url, Authorization="bearer s3cret")
    for wrong in ({}, {"Authorization": "Bearer s3cre"}, {"Authorization": "Basic s3cret"}, {"Authorization": "s3cret"}):
        code, asks, body = refused(server.url, **wrong)
        assert (code, asks) == (401, 'Bearer realm="metrics"')
        assert b"evenflow_" not in body
        assert b"s3cret" not in body


def test_token_is_in_no_text_of_the_settings_and_not_sent_to_workers():
    config = ef.JobConfig(metrics=ef.MetricsConfig(token="s3cret", certificate="/tls.crt", key="/tls.key"))
    assert "s3cret" not in repr(config)
    assert config.of_run("clicks").metrics == ef.MetricsConfig()


def test_certificate_makes_it_https(serve, tmp_path):
    certificate, key = write_certificate(tmp_path)
    server = serve(host="0.0.0.0", certificate=certificate, key=key)
    assert server.url.startswith("https://")
    assert server.warning is None
    assert "evenflow_job_state" in read(server.url, trusting(certificate))
    with pytest.raises(URLError, match="CERTIFICATE_VERIFY_FAILED"):
        read(server.url, ssl.create_default_context())
    with pytest.raises((URLError, RemoteDisconnected, ConnectionError)):
        read(server.url.replace("https", "http"))


def test_certificate_that_was_renewed_is_used_without_a_restart(serve, tmp_path):
    certificate, key = write_certificate(tmp_path)
    server = serve(certificate=certificate, key=key)
    assert read(server.url, trusting(certificate))
    write_certificate(tmp_path)
    assert read(server.url, trusting(certificate))


def test_previous_certificate_stays_while_the_new_one_has_no_key(tmp_path, caplog):
    paths = write_certificate(tmp_path)
    held = Certificate(*map(str, paths))
    before, other = held.context(), tmp_path / "other"
    other.mkdir()
    write_certificate(other)[0].replace(paths[0])
    assert held.context() is before
    assert "keep their previous certificate" in caplog.text


def test_client_that_says_nothing_delays_no_other(serve, tmp_path):
    certificate, key = write_certificate(tmp_path)
    server = serve(certificate=certificate, key=key)
    host, port = server.url.split("/")[2].split(":")
    with socket.create_connection((host, int(port))):
        assert read(server.url, trusting(certificate))


def test_certificate_that_cannot_be_read_is_an_error_and_never_plain_http(tmp_path):
    settings = ef.MetricsConfig(certificate=str(tmp_path / "none.crt"))
    with pytest.raises(OSError, match=r"none\.crt"):
        MetricsServer("clicks", settings, Job())
    (tmp_path / "none.crt").write_text("no certificate")
    with pytest.raises(OSError, match=r"none\.crt can't be used"):
        MetricsServer("clicks", settings, Job())


def test_host_that_is_not_this_machines_is_an_error():
    with pytest.raises(OSError, match=r"192\.0\.2\.1"):
        MetricsServer("clicks", ef.MetricsConfig(host="192.0.2.1"), Job())


def targets(folder):
    return {path.name: json.loads(path.read_text()) for path in folder.iterdir()}


def test_target_file_has_the_address_until_the_job_has_ended_well(tmp_path):
    folder = tmp_path / "targets"
    settings = ef.MetricsConfig(host="0.0.0.0", token="s3cret", discovery=str(folder))
    server = MetricsServer("clicks", settings, Job(), node="10.0.0.7")
    labels = {"job": "clicks", "evenflow_job": "clicks", "host": socket.gethostname()}
    assert targets(folder) == {"clicks.json": [{"targets": [server.url.split("/")[2]], "labels": labels}]}
    assert server.url.startswith("http://10.0.0.7:")
    server.close(JobState.FINISHED)
    assert targets(folder) == {}


def test_target_of_a_job_that_failed_stays_so_that_it_is_down(tmp_path):
    settings = ef.MetricsConfig(discovery=str(tmp_path))
    MetricsServer("clicks", settings, Job()).close(JobState.FAILED)
    assert list(targets(tmp_path)) == ["clicks.json"]
    MetricsServer("clicks", settings, Job()).close(JobState.CANCELLED)
    assert list(targets(tmp_path)) == []


def test_coordinator_that_was_replaced_leaves_the_file_of_the_next(tmp_path):
    settings = ef.MetricsConfig(discovery=str(tmp_path))
    old = MetricsServer("clicks", settings, Job())
    new = MetricsServer("clicks", replace(settings, port=0), Job())
    old.close(JobState.FINISHED)
    assert targets(tmp_path)["clicks.json"][0]["targets"] == [new.url.split("/")[2]]
    new.close(JobState.FINISHED)
    assert targets(tmp_path) == {}


def test_target_says_https(serve, tmp_path):
    certificate, key = write_certificate(tmp_path)
    serve(certificate=certificate, key=key, discovery=str(tmp_path / "targets"))
    assert targets(tmp_path / "targets")["clicks.json"][0]["labels"]["__scheme__"] == "https"


def test_folder_for_targets_that_cannot_be_written_is_a_problem_and_the_metrics_are_served(serve, tmp_path):
    (tmp_path / "file").write_text("")
    server = serve(discovery=str(tmp_path / "file"))
    assert "Prometheus can't discover the metrics" in server.problems[0]
    assert read(server.url)
