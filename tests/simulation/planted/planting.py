"""Planted faults: the simulation must be able to fail.

A fault is a function of a `pytest.MonkeyPatch` that breaks a few lines of a core; `Runs` says which simulated runs are to show it, and how
soon. `assert_found` plants it, looks for the first run that fails, and sees that the same run passes without it.

    def marker_is_not_sent(patch):
        patch.setattr(...)

    assert_found(marker_is_not_sent, Runs(flows.running_updates, within=20, actions=with_moves()))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from traceback import extract_tb

import pytest

import evenflow as ef
from evenflow.testing import ACTIONS, check
from evenflow.testing.simulation.actions import Action

Fault = Callable[[pytest.MonkeyPatch], None]

MOST = 500
"""Runs within which every fault must show."""

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Runs:
    """Simulated runs of `flow` with the seeds below `within`; one of them must fail.

    `judge` raises for a bad run; None: the rows must be the oracle's. `begin`: the first seed to try, for a fault that shows
    there and rarely elsewhere; the seeds below it come last.
    """

    flow: Callable[[], ef.Dataflow]
    within: int
    actions: Sequence[Action] = ACTIONS
    parallelism: tuple[int, ...] = (2, 3)
    save_state: bool = False
    judge: Callable[[int], None] | None = None
    begin: int = 0

    def run(self, seeds: Iterator[int]) -> None:
        """Run the seeds. Raises the error of the first bad run."""
        if self.judge is None:
            check(self.flow, seeds, parallelism=self.parallelism, save_state=self.save_state, actions=self.actions)
        else:
            for seed in seeds:
                self.judge(seed)


@dataclass(frozen=True, slots=True)
class Found:
    """The first seed whose run failed, and its error."""

    seed: int
    error: Exception


def found(fault: Fault, runs: Runs) -> Found | None:
    """Look for the fault; None if no run shows it."""
    tried = []

    def seeds() -> Iterator[int]:
        for seed in (*range(runs.begin, runs.within), *range(runs.begin)):
            tried.append(seed)
            yield seed

    with pytest.MonkeyPatch.context() as patch:
        fault(patch)
        try:
            runs.run(seeds())
        except Exception as error:  # noqa: BLE001 -- a fault may show itself as any error
            return Found(tried[-1], error)
    return None


def assert_found(fault: Fault, runs: Runs) -> None:
    """Check that the fault causes the failure: the error is not raised by the planted code, and the same run passes without
    it.
    """
    assert runs.within <= MOST
    first = found(fault, runs)
    assert first is not None, f"{fault.__name__}: none of {runs.within} runs has shown it"
    raised_by = Path(extract_tb(first.error.__traceback__)[-1].filename)
    assert raised_by.parent != HERE or raised_by.name == "judging.py", f"{fault.__name__} is broken itself: {first.error!r}"
    runs.run(iter([first.seed]))
