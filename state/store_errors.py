"""Translation of file systems' errors to those of `errors.py`: "try again" or "give up", with the names of the store and of the
file.

Each file system raises what its library raises: botocore, aiohttp, google, azure, OSError. The layers above don't need to know
them.

>>> with translated("s3://bucket/jobs", "terms/1"):
...     raise TimeoutError("no answer within 60 s")
Traceback (most recent call last):
    ...
evenflow.state.errors.StoreUnavailableError: s3://bucket/jobs: terms/1: TimeoutError: no answer within 60 s
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .errors import EvenflowError, StoreError, StoreRefusedError, StoreUnavailableError

_REFUSED = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.EINVAL, errno.ENOENT, errno.ENODEV}
)
"""The permanent kinds of OSError."""

_NOT_THERE = (FileNotFoundError, FileExistsError)
"""Errors that are answers, not faults."""

_WRONG_USE = frozenset(
    {
        "NoCredentialsError", "PartialCredentialsError", "ParamValidationError", "ProfileNotFound", "NoRegionError",
        "DefaultCredentialsError", "ClientAuthenticationError", "CredentialUnavailableError",
    }
)  # fmt: skip
"""Errors of botocore, google-auth and azure about their settings, by name: the packages may not be installed."""

_FORBIDDEN = "Forbidden: "
"""The beginning of gcsfs's OSError for status 403, which has no error number."""

_PRECONDITION = 412
"""The HTTP status for creating an object that exists already."""

_LATER = frozenset({408, 409, 425, 429})
"""The HTTP statuses below 500 with which the same request may succeed later."""

_STATUS = ("status", "status_code", "code", "http_status")
"""The attributes in which libraries keep an HTTP status."""


@contextmanager
def translated(store: str, what: str) -> Iterator[None]:
    """Translate every error of a file system in the block to a StoreError. FileNotFoundError, FileExistsError and EvenflowErrors
    pass.

    `store`: its URL; `what`: the file or the operation, for the message.
    """
    try:
        yield
    except (EvenflowError, *_NOT_THERE):
        raise
    except Exception as error:
        if _status(error) == _PRECONDITION:
            raise FileExistsError(f"{store}: {what}: {error}") from error
        raise store_error(error, f"{store}: {what}") from error


def store_error(error: Exception, where: str) -> StoreError:
    """Return the error as "try again" (StoreUnavailableError) or "give up" (StoreRefusedError), with its text after `where`."""
    kind = StoreRefusedError if _is_refusal(error) else StoreUnavailableError
    return kind(f"{where}: {type(error).__name__}: {error}")


def _is_refusal(error: BaseException) -> bool:
    if type(error) is RuntimeError and error.__cause__ is not None:
        return _is_refusal(error.__cause__)  # adlfs wraps errors of uploads and removals
    if (status := _status(error)) is not None:
        return 400 <= status < 500 and status not in _LATER
    if isinstance(error, TimeoutError):
        return False
    if isinstance(error, OSError):
        return isinstance(error, PermissionError) or error.errno in _REFUSED or str(error).startswith(_FORBIDDEN)
    return isinstance(error, (ImportError, NotImplementedError, TypeError, ValueError)) or type(error).__name__ in _WRONG_USE


def _status(error: BaseException) -> int | None:
    """Return the HTTP status of an error, None if it has none."""
    answer: Any = getattr(error, "response", None)
    if isinstance(answer, dict):  # botocore's
        found = answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return found if isinstance(found, int) else None
    found = next((value for name in _STATUS if isinstance(value := getattr(error, name, None), (int, str))), None)
    return int(found) if found is not None and str(found).isdigit() else None


def unusable(url: str, error: Exception) -> str:
    """Return what to do about a URL that can't be opened: the error of fsspec or of the store's package, and the remedy."""
    protocol = url.partition("://")[0]
    if isinstance(error, ImportError):
        return f"{error}: {_INSTALL.get(protocol, f'pip install the package of fsspec for {protocol}://')}"
    if str(error).startswith("Protocol not known"):
        return f"{error}: expected a folder, or a URL such as s3://bucket/folder"
    return f"{error}: check the URL, and the settings of fsspec for {protocol}://"


_INSTALL = {
    "s3": "pip install 'evenflow[s3]'",
    "s3a": "pip install 'evenflow[s3]'",
    "gs": "pip install 'evenflow[gcs]'",
    "gcs": "pip install 'evenflow[gcs]'",
    "abfs": "pip install 'evenflow[azure]'",
    "abfss": "pip install 'evenflow[azure]'",
    "az": "pip install 'evenflow[azure]'",
}
"""The packages of common protocols."""
