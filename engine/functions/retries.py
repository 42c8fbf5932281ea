"""Retries of a call that fails, after pauses that double.

Each pause is drawn between a half and the whole of its length, so that workers that failed together don't call together again.

>>> retries = Retries(4, backoff=0.2)
>>> [retries.longest_pause(failures) for failures in (1, 2, 3, 20)]
[0.2, 0.4, 0.8, 30.0]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

LONGEST_PAUSE = 30.0
"""The longest pause in seconds."""


@dataclass(frozen=True, slots=True)
class Retries:
    """A call that fails is repeated up to `most` times; `backoff`: the first pause in seconds."""

    most: int = 0
    backoff: float = 0.2

    def pause(self, failures: int, random: Random) -> float | None:
        """Return the seconds to wait after a call's last failure of `failures`, or None if it isn't to be repeated."""
        return None if failures > self.most else self.longest_pause(failures) * random.uniform(0.5, 1)

    def longest_pause(self, failures: int) -> float:
        """Return the most seconds to wait after so many failures."""
        return min(self.backoff * 2.0 ** min(failures - 1, 64), max(LONGEST_PAUSE, self.backoff))


ONCE = Retries()


def tried(errors: Sequence[BaseException], seconds: float) -> str:
    """Return which errors the calls ended with.

    >>> tried([TimeoutError(), OSError(), TimeoutError()], 2.5)
    'called 3 times in 2.5 s: TimeoutError (2 times), OSError'
    """
    counts = Counter(type(error).__name__ for error in errors)
    kinds = ", ".join(name if count == 1 else f"{name} ({count} times)" for name, count in counts.items())
    return f"called {len(errors)} times in {seconds:.1f} s: {kinds}"
