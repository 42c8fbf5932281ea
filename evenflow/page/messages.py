"""Messages between the page's server and the follower: views and answers to the server, actions to the follower."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from typing import Any, Literal

from ..scheduler.protocol.view import JobView
from .actions import Action
from .looks import Look
from .queries import Answer

LinkState = Literal["waiting", "live", "lost", "ended"]


@dataclass(frozen=True, slots=True)
class Viewed:
    """A view of a job."""

    job: str
    view: JobView


@dataclass(frozen=True, slots=True)
class Unlinked:
    """A job that can't be reached; `job` is empty if the whole cluster can't be. `text` says why, in a sentence."""

    job: str
    state: LinkState
    text: str


@dataclass(frozen=True, slots=True)
class Quiet:
    """A sign of life of a follower that has nothing to report."""


@dataclass(frozen=True, slots=True)
class ActionDone:
    """The outcome of the action that the server sent with this `number`: the answer for the page, or the problem."""

    number: int
    answer: Answer = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ActionWanted:
    """An action that the follower has to carry out on a job, or a look at its state."""

    number: int
    job: str
    request: Action | Look


Message = Viewed | Unlinked | Quiet | ActionDone
"""A message of the follower."""


def packed(message: Message | ActionWanted) -> bytes:
    """Pickle a message."""
    return pickle.dumps(message)


def unpacked(data: bytes) -> Any:
    """Unpickle a message, which a process of ours has written."""
    return pickle.loads(data)  # noqa: S301 -- a child process that we started ourselves wrote it
