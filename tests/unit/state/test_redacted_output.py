"""Log records, stderr and errors that leave the process have none of its secrets."""

from __future__ import annotations

import io
import logging
import sys
import traceback

import pytest

from evenflow.engine.errors import ConnectorError, RecordError, short, shown
from evenflow.scheduler.protocol.failures import failure_of
from evenflow.state.errors import StoreUnavailableError
from evenflow.state.redacted_output import CREDENTIALS, cleared, clears_errors, guard, guard_credentials

SECRET = "unhe4rd-of/word"


@pytest.fixture(autouse=True)
def guarded():
    guard(SECRET)


class Unchangeable(Exception):
    """An error whose text can't be changed, like those of libraries in C."""

    def __str__(self):
        return f"bad: {SECRET}"


class Answered(Exception):
    def __init__(self, response):
        super().__init__("refused")
        self.response = response


def trace(error):
    return "".join(traceback.format_exception(error))


def raised(make):
    """Raise an error that a library's error causes, and return it."""

    def connect():
        raise ValueError(f"wrong: {SECRET}", {"url": f"http://me:{SECRET}@host"})

    def work():
        try:
            connect()
        except ValueError as cause:
            error = make()
            error.add_note(f"with {SECRET}")
            raise error from cause

    with pytest.raises(Exception) as found:
        work()
    return found.value


@pytest.mark.parametrize(
    "make", [lambda: KeyError(SECRET), lambda: ConnectorError("x"), lambda: OSError(5, f"no {SECRET}", SECRET), Unchangeable]
)
def test_an_error_is_cleared_with_its_notes_and_causes(make):
    error = cleared(raised(make))
    assert SECRET not in trace(error)
    assert trace(error).count("***") >= 2
    assert "in connect" in trace(error)


def test_attributes_of_an_error_are_cleared_and_others_keep_their_type():
    error = Answered({"ResponseMetadata": {"HTTPStatusCode": 403, "headers": [f"key {SECRET}", SECRET.encode()]}})
    assert cleared(error) is error
    assert error.response == {"ResponseMetadata": {"HTTPStatusCode": 403, "headers": ["key ***", b"***"]}}


def test_errors_in_a_group_and_in_a_circle_are_cleared():
    error = ExceptionGroup("two", [ValueError(SECRET), KeyError(SECRET)])
    error.exceptions[0].__context__ = error
    assert SECRET not in trace(cleared(error))


def test_errors_of_evenflow_never_contain_a_secret():
    record = RecordError("parse", f"refused: {SECRET}", key=SECRET, record={"a": SECRET})
    for error in (ConnectorError(f"no {SECRET}"), StoreUnavailableError(f"no {SECRET}"), record):
        assert SECRET not in str(error) + repr(error) + shown(error)
        assert SECRET not in str(failure_of(error, 0.0))
    assert SECRET not in short({"a": SECRET}) + shown(ValueError(SECRET))


def test_log_records_have_no_secrets_in_text_arguments_or_traceback():
    log, out = logging.getLogger("some.library"), io.StringIO()
    handler = logging.StreamHandler(out)
    log.addHandler(handler)
    try:
        log.warning("connecting with %s to %s", SECRET, "host")
        log.warning("%d rows", 7)
        log.error("failed", exc_info=raised(lambda: KeyError(SECRET)))
    finally:
        log.removeHandler(handler)
    assert out.getvalue().startswith("connecting with *** to host\n7 rows\nfailed\nTraceback")
    assert SECRET not in out.getvalue()


def test_stderr_has_no_secrets_and_stdout_is_left_alone(monkeypatch):
    for name in ("stderr", "stdout"):
        monkeypatch.setattr(sys, name, io.StringIO())
    guard(SECRET)
    for stream in (sys.stderr, sys.stdout):
        stream.write(f"Exception in a thread: {SECRET}\n")
    assert sys.stderr.getvalue() == "Exception in a thread: ***\n"
    assert SECRET in sys.stdout.getvalue()


def test_methods_that_other_processes_call_raise_errors_without_secrets():
    @clears_errors
    class Actor:
        def call(self, kind):
            raise kind(SECRET)

    for kind, shown_as in ((ValueError, ValueError), (Unchangeable, RuntimeError)):
        with pytest.raises(shown_as) as found:
            Actor().call(kind)
        assert SECRET not in trace(found.value)
        assert "in call" in trace(found.value)


def test_credentials_of_object_stores_in_the_environment_are_secrets(monkeypatch):
    for name in CREDENTIALS:
        monkeypatch.setenv(name, f"value-of-{name}")
    guard_credentials()
    assert str(ConnectorError(" ".join(f"value-of-{name}" for name in CREDENTIALS))) == " ".join(["***"] * len(CREDENTIALS))
