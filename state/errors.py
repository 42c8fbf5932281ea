"""The root of all errors that evenflow raises on purpose, and the errors of saved or external state.

Invariant: every error for a user to handle is an `EvenflowError`, at every layer, and its message says what to do. The others are
in `engine/errors.py`.
"""

from __future__ import annotations

from typing import Any

from .known_secrets import redacted


class EvenflowError(Exception):
    """Base class of every error that evenflow raises on purpose. Its text and notes have no secrets.

    `remedy`: what to do if another attempt of the job would fail in the same way, None if another attempt may help.
    """

    remedy: str | None = None

    def __init__(self, *args: object) -> None:
        super().__init__(*(redacted(arg) if isinstance(arg, str) else arg for arg in args))

    def add_note(self, note: str) -> None:
        super().add_note(redacted(note))

    @property
    def noted(self) -> dict[str, Any]:
        """The notes and the remedy; a subclass that defines its own pickling has to include them."""
        return {name: value for name, value in vars(self).items() if name in ("__notes__", "remedy")}


class StateError(EvenflowError):
    """Keyed state can't be stored or read: check the disk, the server or the checkpoint that the message names, then run the job
    again.
    """


class StateBackendError(StateError):
    """A backend can't be reached, is full, or gave a wrong answer. The message names the operator, the place, and what to do."""


class StateFolderError(StateBackendError):
    """A folder for state can't be created or used on a node. `number`: the operating system's error number, if it has one."""

    def __init__(self, operator: str, folder: str, problem: str, number: int | None = None) -> None:
        self.operator, self.folder, self.problem, self.number = operator, folder, redacted(problem), number
        super().__init__(
            f"operator `{operator}` can't store its state in {folder}: {problem}; "
            "set StateConfig(dir=...) to a folder on a local disk with free space"
        )

    def __reduce__(self) -> Any:
        return StateFolderError, (self.operator, self.folder, self.problem, self.number), self.noted


class StoreError(StateError, OSError):
    """A store of checkpoints or files fails; the message names the store and the file. It is one of the two below."""


class StoreUnavailableError(StoreError):
    """The store can't be reached, is overloaded or full: the same request may succeed later."""


class StoreRefusedError(StoreError):
    """The store rejects the request and will reject it again: check the address, the credentials and the rights."""


class CorruptStateError(StateError):
    """A state file or a manifest is damaged (truncated or altered), or has another format."""


class CorruptCheckpointError(StateError):
    """A checkpoint can't be read: one of its files is missing, truncated or altered."""

    def __init__(self, worker: str, checkpoint: int, problem: str) -> None:
        self.worker, self.checkpoint, self.problem = worker, checkpoint, redacted(problem)
        super().__init__(f"worker {worker} can't restore checkpoint {checkpoint}: {problem}")

    def __reduce__(self) -> Any:
        return CorruptCheckpointError, (self.worker, self.checkpoint, self.problem), self.noted
