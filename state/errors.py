"""The root of all errors that evenflow raises on purpose, and what can go wrong with saved or outsourced state.

Invariant: whatever a user is to handle is an `EvenflowError`, at every layer, and its message says what to do. The others are in
`engine/errors.py`.
"""

from __future__ import annotations

from typing import Any


class EvenflowError(Exception):
    """Base class of every error that evenflow raises on purpose.

    `remedy`: what to do about it where another attempt of the job would meet it again, None where another attempt may help.
    """

    remedy: str | None = None

    @property
    def noted(self) -> dict[str, Any]:
        """The notes and the remedy, which a subclass that says how it is pickled has to pass on."""
        return {name: value for name, value in vars(self).items() if name in ("__notes__", "remedy")}


class StateError(EvenflowError):
    """Keyed state can't be kept or read: see to the disk, the server or the checkpoint that the message names, then run the job again."""


class StateBackendError(StateError):
    """A backend can't be reached, is full, or gave a wrong answer. The message names the operator, the place, and what to do."""


class StateFolderError(StateBackendError):
    """A folder for state can't be made or used on a node. `number`: the operating system's number of the problem, if it has one."""

    def __init__(self, operator: str, folder: str, problem: str, number: int | None = None) -> None:
        self.operator, self.folder, self.problem, self.number = operator, folder, problem, number
        super().__init__(
            f"operator `{operator}` can't keep its state in {folder}: {problem}; "
            "let StateConfig(dir=...) name a folder on a local disk with room"
        )

    def __reduce__(self) -> Any:
        return StateFolderError, (self.operator, self.folder, self.problem, self.number), self.noted


class StoreError(StateError, OSError):
    """A store of checkpoints or files doesn't do what it is asked: the message names the store and the file. It is one of the two below."""


class StoreUnavailableError(StoreError):
    """The store can't be reached, is overloaded or full: the same request may succeed later."""


class StoreRefusedError(StoreError):
    """The store refuses the request and will refuse it again: check the address, the credentials and the rights."""


class CorruptStateError(StateError):
    """A state file or a manifest is damaged (truncated or altered), or of another format."""


class CorruptCheckpointError(StateError):
    """A checkpoint can't be read: one of its files is missing, truncated or altered."""

    def __init__(self, worker: str, checkpoint: int, problem: str) -> None:
        self.worker, self.checkpoint, self.problem = worker, checkpoint, problem
        super().__init__(f"worker {worker} can't restore checkpoint {checkpoint}: {problem}")

    def __reduce__(self) -> Any:
        return CorruptCheckpointError, (self.worker, self.checkpoint, self.problem), self.noted
