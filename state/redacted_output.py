"""Guards that keep the secrets of this process out of what libraries write: log records, stderr, and errors that leave it.

Guards are installed with the first secret. A log record and a line on stderr are cleared as texts, so that a library keeps its
own errors. `cleared` changes an error with its causes, for what other processes or a notebook show of it. Stdout is left alone:
it has rows.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar, cast

from .known_secrets import learn, redacted

C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])

_MOST_DEPTH = 4
"""The depth of lists and dicts in an error's attributes up to which texts are cleared."""


CREDENTIALS = (
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_STORAGE_CONNECTION_STRING",
    "AZURE_CLIENT_SECRET",
    "GOOGLE_SERVICE_ACCOUNT_KEY",
)
"""The variables of the environment with secrets for object stores."""


def guard(secret: str) -> None:
    """Learn a secret, and keep it out of this process's log records and its stderr."""
    learn(secret)
    factory = logging.getLogRecordFactory()
    if not isinstance(factory, _Records):
        logging.setLogRecordFactory(_Records(factory))
    for stream in {sys.stderr, sys.__stderr__}:
        if stream is not None and not isinstance(stream.write, _Write):
            with suppress(AttributeError):  # a stream whose methods can't be replaced
                stream.write = _Write(stream.write)  # type: ignore[method-assign]


def guard_credentials() -> None:
    """Guard the credentials of object stores in the environment, which their libraries read without evenflow."""
    for name in CREDENTIALS:
        if value := os.environ.get(name):
            guard(value)


class _Records:
    """A factory of log records without secrets, on top of another."""

    def __init__(self, made: Callable[..., logging.LogRecord]) -> None:
        self._made = made

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record = self._made(*args, **kwargs)
        with suppress(Exception):  # arguments that don't fit the message: the handler reports them, on stderr
            text = record.getMessage()
            if (clear := redacted(text)) != text:
                record.msg, record.args = clear, ()
        if record.exc_info and record.exc_info[1] is not None:
            trace = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
            if (clear := redacted(trace)) != trace:
                record.exc_text = clear
        return record


class _Write:
    """The method `write` of a stream, without secrets."""

    def __init__(self, write: Callable[[str], Any]) -> None:
        self._write = write

    def __call__(self, text: str) -> Any:
        return self._write(redacted(text))


def clears_errors(actor: C) -> C:
    """Let the methods of a class, which other processes call, raise errors without secrets."""
    for name, method in list(vars(actor).items()):
        if isinstance(method, FunctionType) and (name == "__init__" or not name.startswith("_")):
            setattr(actor, name, clearing(method))
    return actor


def clearing(method: F) -> F:
    """Let a function raise errors without secrets."""

    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        except BaseException as error:
            if (clear := cleared(error)) is error:
                raise
        raise clear

    return cast("F", call)


def cleared(error: BaseException) -> BaseException:
    """Remove the secrets from an error, its notes and attributes, and from its causes; return it.

    An error that can't be changed is replaced by a RuntimeError with its type and text.
    """
    return _cleared(error, set())


def _cleared(error: BaseException, seen: set[int]) -> BaseException:
    if id(error) in seen:
        return error
    seen.add(id(error))
    if error.__cause__ is not None:
        suppressed = error.__suppress_context__
        error.__cause__ = _cleared(error.__cause__, seen)
        error.__suppress_context__ = suppressed
    if error.__context__ is not None:
        error.__context__ = _cleared(error.__context__, seen)
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            _cleared(inner, seen)
    with suppress(Exception):
        error.args = _without(error.args, _MOST_DEPTH)
    for name, value in list(vars(error).items()):
        with suppress(Exception):
            if (clear := _without(value, _MOST_DEPTH)) is not value:
                setattr(error, name, clear)
    text = "".join(traceback.format_exception_only(error))
    if (clear := redacted(text)) == text:
        return error
    substitute = RuntimeError(clear.strip())
    substitute.__cause__, substitute.__context__ = error.__cause__, error.__context__
    return substitute.with_traceback(error.__traceback__)


def _without(value: Any, depth: int) -> Any:
    """Return the value without secrets: the same object if it has none."""
    if type(value) is str:
        clear = redacted(value)
        return value if clear == value else clear
    if type(value) is bytes:
        text = value.decode("latin-1")
        clear = redacted(text)
        return value if clear == text else clear.encode("latin-1")
    if type(value) not in (list, tuple, dict) or not depth:
        return value
    if type(value) is dict:
        items = {name: _without(each, depth - 1) for name, each in value.items()}
        return items if any(items[name] is not each for name, each in value.items()) else value
    each_clear = [_without(each, depth - 1) for each in value]
    return type(value)(each_clear) if any(new is not old for new, old in zip(each_clear, value, strict=True)) else value
