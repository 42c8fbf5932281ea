"""Derives a chaos run from a seed: the order of the accidents and of the changes before them, and all other random choices.

Every step has its own random generator, so that the number of choices in another step, which time decides, has no effect.

>>> script = Script(7, ("worker", "coordinator"), ("move", "scale"))
>>> sorted((script.kind(0), script.kind(1))), [script.kind(n) for n in range(9)] == [script.kind(n) for n in range(9)]
(['coordinator', 'worker'], True)
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random


class Script:
    """The order of `kinds` of accidents and of `changes`: each occurs once before one occurs again."""

    def __init__(self, seed: int, kinds: Sequence[str], changes: Sequence[str]) -> None:
        self._seed, self._kinds, self._changes = seed, tuple(kinds), tuple(changes)

    def kind(self, step: int) -> str:
        """Return the accident of a step."""
        return self._dealt("kinds", self._kinds, step)

    def change(self, step: int) -> str | None:
        """Return the change in progress at a step: one in every second step, if there are changes."""
        return self._dealt("changes", self._changes, step // 2) if step % 2 and self._changes else None

    def chance(self, step: int, what: str) -> Random:
        """Return the generator of all other choices in a step; the same at each call."""
        return Random(f"{self._seed} {what} {step}")  # noqa: S311 -- what happens is no secret

    def _dealt(self, what: str, deck: tuple[str, ...], number: int) -> str:
        turn, place = divmod(number, len(deck))
        return self.chance(turn, what).sample(deck, len(deck))[place]
