"""Errors of file systems and their libraries that mean "try again" or "give up"."""

from __future__ import annotations

import errno
import os

import pytest

from evenflow.state.errors import CorruptStateError, EvenflowError, StoreRefusedError, StoreUnavailableError
from evenflow.state.store_errors import translated


class ConnectionClosedError(Exception):
    """An error like botocore's of that name, which is no OSError."""


class NoCredentialsError(Exception):
    """An error like botocore's, which is recognised by its name."""


class ClientError(Exception):
    """An error like botocore's of that name."""

    def __init__(self, status):
        super().__init__(f"status {status}")
        self.response = {"ResponseMetadata": {"HTTPStatusCode": status}}


class HttpError(Exception):
    """An error like those of gcsfs, aiohttp and azure, which keep the status in an attribute."""

    def __init__(self, name, status):
        super().__init__(f"status {status}")
        setattr(self, name, status)


def of(kind):
    return OSError(kind, os.strerror(kind))


AGAIN = [
    ConnectionClosedError("closed"), ConnectionResetError("reset"), TimeoutError("late"), BrokenPipeError("broken"), of(errno.ENOSPC),
    of(errno.EIO), of(errno.ESTALE), of(errno.EBUSY), OSError("of no kind"), ClientError(503), ClientError(500), ClientError(429),
    HttpError("code", 503), HttpError("status", 408), HttpError("status_code", "502"), RuntimeError("whatever"),
]  # fmt: skip
GIVE_UP = [
    PermissionError("denied"), of(errno.EROFS), of(errno.ENOTDIR), of(errno.ENAMETOOLONG), of(errno.EINVAL), ClientError(403),
    ClientError(400), HttpError("code", 401), HttpError("status", 404), HttpError("status_code", "403"), NoCredentialsError("none"),
    NotImplementedError("no"), ImportError("Install s3fs"), ValueError("wrong"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("error", "kind"),
    [*((error, StoreUnavailableError) for error in AGAIN), *((error, StoreRefusedError) for error in GIVE_UP)],
    ids=lambda value: f"{type(value).__name__}-{value}" if isinstance(value, Exception) else value.__name__,
)
def test_error_is_translated_with_the_store_and_the_file(error, kind):
    with pytest.raises(kind) as caught, translated("s3://bucket/jobs", "terms/1"):
        raise error
    assert str(caught.value) == f"s3://bucket/jobs: terms/1: {type(error).__name__}: {error}"
    assert isinstance(caught.value, OSError)
    assert isinstance(caught.value, EvenflowError)


@pytest.mark.parametrize(
    "error", [FileNotFoundError("gone"), FileExistsError("there"), CorruptStateError("cut")], ids=lambda e: type(e).__name__
)
def test_answers_and_errors_of_our_own_pass(error):
    with pytest.raises(type(error)) as caught, translated("s3://bucket", "x"):
        raise error
    assert caught.value is error


@pytest.mark.parametrize("error", [ClientError(412), HttpError("code", 412)], ids=["botocore", "gcsfs"])
def test_condition_that_is_not_met_means_that_the_object_is_there(error):
    with pytest.raises(FileExistsError), translated("gs://bucket", "terms/1"):
        raise error
