"""Every error that evenflow raises on purpose, by whose fault it is.

`EvenflowError` is the base. `FlowError` is a mistake in how the dataflow was written, found before anything runs.
`RecordError` is a record (or a user function on it) that an operator could not process. `ConnectorError` is the outside
world: a file, a folder, a Spark query. `ProtocolError` is a peer that sent what it must not.

>>> raise FlowError("operator `count` is defined twice")
Traceback (most recent call last):
    ...
evenflow.engine.errors.FlowError: operator `count` is defined twice
"""

from __future__ import annotations

from typing import Any


class EvenflowError(Exception):
    """Base class of every error that evenflow raises on purpose."""


class FlowError(EvenflowError):
    """The dataflow is not well formed: found when it is built or planned, before any worker starts."""


class RecordError(EvenflowError):
    """An operator could not process a record: a user function raised, or a value had a wrong type.

    The message names the operator, the key where there is one, and the record.
    """

    def __init__(self, operator: str, problem: str, *, key: Any = None, record: Any = None) -> None:
        self.operator, self.problem, self.key, self.record = operator, problem, key, record
        parts = [f"operator `{operator}`: {problem}"]
        if key is not None:
            parts.append(f"key: {_short(key)}")
        if record is not None:
            parts.append(f"record: {_short(record)}")
        super().__init__("\n  ".join(parts))

    def __reduce__(self) -> Any:
        return _rebuild_record_error, (self.operator, self.problem, self.key, self.record)


class ConnectorError(EvenflowError):
    """A source or a sink could not read or write: names the connector, the path, and what to do."""


class ProtocolError(EvenflowError):
    """A peer sent something that the protocol does not allow; the receiver's state is unchanged."""


class JobError(EvenflowError):
    """A job failed, or was asked for something that its present state does not allow."""


class CorruptCheckpointError(EvenflowError):
    """A checkpoint can't be read: a file of it is gone, cut short or altered."""

    def __init__(self, worker: str, checkpoint: int, problem: str) -> None:
        self.worker, self.checkpoint, self.problem = worker, checkpoint, problem
        super().__init__(f"worker {worker} can't restore checkpoint {checkpoint}: {problem}")

    def __reduce__(self) -> Any:
        return CorruptCheckpointError, (self.worker, self.checkpoint, self.problem)


def _rebuild_record_error(operator: str, problem: str, key: Any, record: Any) -> RecordError:
    return RecordError(operator, problem, key=key, record=record)


def _short(value: Any, limit: int = 500) -> str:
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"
