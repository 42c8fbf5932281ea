"""The conditions on the times of two streams' rows in a join: `ef.between(...)`, `ef.always()`; windows are the third kind.

>>> between("-5m", "10m")
Between(lower=-300000000, upper=600000000)
>>> between(0, "expires").describe()
'right between 0 s after left and left.expires'
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import FlowError
from ..state_description import seconds_text
from ..time.duration import Duration, microseconds, signed_microseconds


@dataclass(frozen=True, slots=True)
class Between:
    """A condition on right's time less left's: at least `lower` and at most `upper` microseconds.

    `upper` may also be the name of a column of left; right's time is then at most that.
    """

    lower: int
    upper: int | str

    def describe(self) -> str:
        upper = f"left.{self.upper}" if isinstance(self.upper, str) else f"{self.upper / 1e6:g} s after it"
        return f"right between {self.lower / 1e6:g} s after left and {upper}"


@dataclass(frozen=True, slots=True)
class Always:
    """The condition that holds for any two rows of a key; both sides are kept forever."""

    def describe(self) -> str:
        return "at any time; all rows are kept"


def between(lower: Duration, upper: Duration) -> Between:
    """Join rows of right whose event time is in [left's + `lower`, left's + `upper`]; a duration may be negative, as in `"-5m"`.

    `upper` may also be the name of a column of left with timestamps: right's time is then at most that. The column must not be
    null. Raises FlowError if a bound is neither, or `lower` is later than `upper`.

    >>> between(0, "1h").upper
    3600000000
    """
    first = _signed(lower)
    if first is None:
        raise FlowError(
            f'between({lower!r}, ...): the lower bound must be a duration, for example 0 or "-5m"; a column of left can only be the '
            "upper bound, because rows of right could otherwise never be forgotten"
        )
    last = _signed(upper)
    if last is None:
        if not isinstance(upper, str) or not upper:
            raise FlowError(
                f'between(..., {upper!r}): the upper bound must be a duration, for example "10m", or the name of a column of left'
            )
        return Between(first, upper)
    if first > last:
        raise FlowError(f"between({lower!r}, {upper!r}): the lower bound is later than the upper one, so no rows could join")
    return Between(first, last)


def always(ttl: Duration | None = None) -> Between | Always:
    """Join every row of left with every row of right that has the same key.

    Both sides are kept forever, unless `ttl` is given: then rows join only if their event times are at most `ttl` apart, and are
    forgotten after that. Raises FlowError if `ttl` is no duration.
    """
    if ttl is None:
        return Always()
    life = microseconds(ttl, "ttl")
    return Between(-life, life)


def _signed(duration: Duration) -> int | None:
    """Return microseconds, None if it is no duration."""
    try:
        return signed_microseconds(duration)
    except FlowError:
        return None


def described_within(within: Between | Always) -> str:
    """Describe exactly which times match, for a `StateDescription`."""
    if isinstance(within, Always):
        return "always"
    upper = f"the column `{within.upper}`" if isinstance(within.upper, str) else seconds_text(within.upper)
    return f"between {seconds_text(within.lower)} and {upper}"
