"""What a follower tells the server: a view of a job, or why there is none; and what the server asks of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ..scheduler.protocol.view import JobView
from .actions import Action
from .asked import Answer

LinkState = Literal["waiting", "live", "lost", "ended"]


@dataclass(frozen=True, slots=True)
class Viewed:
    """A job as it is now."""

    job: str
    view: JobView


@dataclass(frozen=True, slots=True)
class Unlinked:
    """The job can't be heard; `job` is empty if that holds for the whole cluster. `text` says why, in a sentence."""

    job: str
    state: LinkState
    text: str


@dataclass(frozen=True, slots=True)
class Quiet:
    """There is nothing to tell: the follower lives."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What became of the action that the server sent as this `number`: what pages are told of it, or why it can't be."""

    number: int
    answer: Answer = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the server asks the follower: to have a job carry out a request."""

    number: int
    job: str
    request: Action


Heard = Viewed | Unlinked | Quiet | Answered
