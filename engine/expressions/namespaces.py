"""The functions of texts, times, lists and structs: `.str`, `.dt`, `.list` and `.struct` of an expression."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Generic, TypeVar

from .options import option, time_step

E = TypeVar("E")
"""The type of expressions. A namespace gets the function that makes a call of its expression."""


class Texts(Generic[E]):
    """The functions of texts. Positions and lengths count characters, not bytes."""

    def __init__(self, call: Callable[..., E]) -> None:
        self._call = call

    def upper(self) -> E:
        """Convert to upper case."""
        return self._call("str.upper")

    def lower(self) -> E:
        """Convert to lower case."""
        return self._call("str.lower")

    def len_chars(self) -> E:
        """Count the characters, int64."""
        return self._call("str.len_chars")

    def len_bytes(self) -> E:
        """Count the bytes of the UTF-8 encoding, int64."""
        return self._call("str.len_bytes")

    def contains(self, pattern: str, *, literal: bool = False) -> E:
        """Test for a match of a regular expression (RE2), or of a text if `literal`."""
        return self._matching("contains", pattern, literal)

    def starts_with(self, prefix: str) -> E:
        """Test for a text at the beginning."""
        return self._call("str.starts_with", option("str.starts_with", "prefix", prefix, str))

    def ends_with(self, suffix: str) -> E:
        """Test for a text at the end."""
        return self._call("str.ends_with", option("str.ends_with", "suffix", suffix, str))

    def count_matches(self, pattern: str, *, literal: bool = False) -> E:
        """Count the matches that don't overlap, int64; `pattern` is as for `contains`."""
        return self._matching("count_matches", pattern, literal)

    def find(self, pattern: str, *, literal: bool = False) -> E:
        """Return the position of the first match in characters, from 0, int64; null without one. `pattern` is as for `contains`."""
        return self._matching("find", pattern, literal)

    def replace(self, pattern: str, value: str, *, literal: bool = False) -> E:
        r"""Replace the first match. In `value` r"\1" is the first group of a regular expression; `pattern` is as for `contains`."""
        return self._replacing("replace", pattern, value, literal)

    def replace_all(self, pattern: str, value: str, *, literal: bool = False) -> E:
        """Replace all matches, as `replace` does the first."""
        return self._replacing("replace_all", pattern, value, literal)

    def extract(self, pattern: str, group_index: int = 1) -> E:
        """Return a group of the first match of a regular expression; 0 is the whole match. Null without a match."""
        group = option("str.extract", "group_index", group_index, int)
        return self._call("str.extract", option("str.extract", "pattern", pattern, str), group)

    def slice(self, offset: int, length: int | None = None) -> E:
        """Return `length` characters from position `offset` on, which counts from the end if negative; without `length` all others."""
        start = option("str.slice", "offset", offset, int)
        return self._call("str.slice", start, None if length is None else option("str.slice", "length", length, int))

    def strip_chars(self, characters: str | None = None) -> E:
        """Remove these characters, by default white space, from both ends."""
        return self._stripped("strip_chars", characters)

    def strip_chars_start(self, characters: str | None = None) -> E:
        """Remove these characters, by default white space, from the beginning."""
        return self._stripped("strip_chars_start", characters)

    def strip_chars_end(self, characters: str | None = None) -> E:
        """Remove these characters, by default white space, from the end."""
        return self._stripped("strip_chars_end", characters)

    def split(self, by: str) -> E:
        """Split at each occurrence of a text, into a list of texts."""
        return self._call("str.split", option("str.split", "by", by, str))

    def to_datetime(self, format: str) -> E:  # noqa: A002 -- named as in Polars
        """Parse a time without a zone, of microseconds, by a format such as "%Y-%m-%d %H:%M:%S". A text that doesn't fit is an error."""
        return self._call("str.to_datetime", option("str.to_datetime", "format", format, str))

    def _matching(self, name: str, pattern: str, literal: bool) -> E:
        name = f"str.{name}"
        return self._call(name, option(name, "pattern", pattern, str), option(name, "literal", literal, bool))

    def _replacing(self, name: str, pattern: str, value: str, literal: bool) -> E:
        name = f"str.{name}"
        found = option(name, "pattern", pattern, str)
        return self._call(name, found, option(name, "value", value, str), option(name, "literal", literal, bool))

    def _stripped(self, name: str, characters: str | None) -> E:
        name = f"str.{name}"
        return self._call(name, None if characters is None else option(name, "characters", characters, str))


class Times(Generic[E]):
    """The functions of dates, times and durations. Parts of a time with a zone are those on the clocks of that zone."""

    def __init__(self, call: Callable[..., E]) -> None:
        self._call = call

    def year(self) -> E:
        """Return the year, int64."""
        return self._call("dt.year")

    def quarter(self) -> E:
        """Return the quarter, 1 to 4, int64."""
        return self._call("dt.quarter")

    def month(self) -> E:
        """Return the month, 1 to 12, int64."""
        return self._call("dt.month")

    def week(self) -> E:
        """Return the week of ISO 8601, 1 to 53, int64."""
        return self._call("dt.week")

    def weekday(self) -> E:
        """Return the day of the week, from 1 for Monday to 7 for Sunday, int64."""
        return self._call("dt.weekday")

    def day(self) -> E:
        """Return the day of the month, int64."""
        return self._call("dt.day")

    def ordinal_day(self) -> E:
        """Return the day of the year, from 1, int64."""
        return self._call("dt.ordinal_day")

    def hour(self) -> E:
        """Return the hour, 0 to 23, int64."""
        return self._call("dt.hour")

    def minute(self) -> E:
        """Return the minute, int64."""
        return self._call("dt.minute")

    def second(self) -> E:
        """Return the second, int64."""
        return self._call("dt.second")

    def microsecond(self) -> E:
        """Return the microseconds since the second, int64."""
        return self._call("dt.microsecond")

    def date(self) -> E:
        """Return the date, date32."""
        return self._call("dt.date")

    def truncate(self, every: str | timedelta) -> E:
        """Round down to a multiple of a step: "15m", "1h", "1d", "1w" (from Monday), "1mo", "1q", "1y".

        Steps count from 1970, on the clocks of the time's zone. Of an hour that clocks show twice, steps of up to an hour stay in
        their half.
        """
        return self._call("dt.truncate", *time_step("dt.truncate", every))

    def strftime(self, format: str) -> E:  # noqa: A002 -- named as in Polars
        """Format as text, as Python's `strftime` does: "%Y-%m-%d %H:%M:%S"."""
        return self._call("dt.strftime", option("dt.strftime", "format", format, str))

    def epoch(self, unit: str = "us") -> E:
        """Count the units ("s", "ms", "us" or "ns") since 1970 in UTC, rounded down, int64."""
        return self._call("dt.epoch", option("dt.epoch", "unit", unit, str))

    def total_seconds(self) -> E:
        """Return a duration in seconds, float64."""
        return self._call("dt.total_seconds")


class Lists(Generic[E]):
    """The functions of lists."""

    def __init__(self, call: Callable[..., E]) -> None:
        self._call = call

    def len(self) -> E:
        """Count the elements, int64."""
        return self._call("list.len")

    def get(self, index: int) -> E:
        """Return an element: 0 is the first, -1 the last. Null if there is none."""
        return self._call("list.get", option("list.get", "index", index, int))

    def contains(self, value: Any) -> E:
        """Test if an element equals `value`."""
        return self._call("list.contains", value)

    def join(self, separator: str) -> E:
        """Concatenate texts, with a separator between them; null if one of them is null."""
        return self._call("list.join", option("list.join", "separator", separator, str))


class Structs(Generic[E]):
    """The functions of structs."""

    def __init__(self, call: Callable[..., E]) -> None:
        self._call = call

    def field(self, name: str) -> E:
        """Return a field."""
        return self._call("struct.field", option("struct.field", "name", name, str))
