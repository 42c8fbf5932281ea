"""What a seed decides of a chaos run: the order of the accidents and of the changes before them, and all else that is drawn for each.

Every step draws for itself, so that how many draws another took, which time decides, changes nothing.

>>> script = Script(7, ("worker", "coordinator"), ("move", "scale"))
>>> sorted((script.kind(0), script.kind(1))), [script.kind(n) for n in range(9)] == [script.kind(n) for n in range(9)]
(['coordinator', 'worker'], True)
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random


class Script:
    """`kinds` of accidents and `changes` by name: each comes once before one comes again."""

    def __init__(self, seed: int, kinds: Sequence[str], changes: Sequence[str]) -> None:
        self._seed, self._kinds, self._changes = seed, tuple(kinds), tuple(changes)

    def kind(self, step: int) -> str:
        """What happens in a step."""
        return self._dealt("kinds", self._kinds, step)

    def change(self, step: int) -> str | None:
        """What is to be under way then: something in every second step, if there are changes."""
        return self._dealt("changes", self._changes, step // 2) if step % 2 and self._changes else None

    def chance(self, step: int, what: str) -> Random:
        """For all else that is drawn for a step; the same each time it is asked for."""
        return Random(f"{self._seed} {what} {step}")  # noqa: S311 -- what happens is no secret

    def _dealt(self, what: str, deck: tuple[str, ...], number: int) -> str:
        turn, place = divmod(number, len(deck))
        return self.chance(turn, what).sample(deck, len(deck))[place]
