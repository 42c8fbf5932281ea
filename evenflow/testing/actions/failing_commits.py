"""Makes sinks of simulated jobs fail in a commit: before it, or after it, so that the job does not learn of its success."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..simulation.actions import Action, Choice, World
from ..simulation.storage import Storage

SINKS = "the sinks"

SHARE = 0.05
"""The share of storage's moments at which a commit may begin to fail."""


def with_failing_commits(actions: Sequence[Action], most: int = 4) -> tuple[Action, ...]:
    """Return `actions` with at most `most` commits that fail. For a job that saves its state.

    `check(make_flow, seeds, save_state=True, actions=with_failing_commits(with_crashes(ACTIONS)))`
    """

    def fail(world: World) -> Iterator[Choice]:
        storage = world.coordinator.all_storage
        may = storage.commits_failed < most and not storage.looks_until_failure
        if may and world.coordinator.storage.waits and world.random.random() < SHARE:
            yield Choice(SINKS, "fail", _fail, (storage, world.random.choice((1, 2))))

    return *actions, fail


def _fail(storage: Storage, looks: int) -> None:
    storage.looks_until_failure = looks
