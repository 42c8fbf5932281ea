"""Formats numbers, sizes, times and bars in few characters.

>>> bar(0.5, 8), bar(2.0, 4), bar(0.0, 4)
('████', '████', '')
"""

from __future__ import annotations

from datetime import UTC, datetime

_EIGHTHS = " ▏▎▍▌▋▊▉"


def bar(share: float, width: int = 24) -> str:
    """Draw a bar that fills `share` of `width` characters, to an eighth of a character; a share above 1 counts as 1."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def clock(at: float | None) -> str:
    """Format seconds since the epoch as a time of day in this machine's time zone; `-` for none."""
    return "-" if at is None else f"{datetime.fromtimestamp(at, UTC).astimezone():%H:%M:%S}"


def event_time(watermark: datetime | None) -> str:
    """Format an event time in UTC, to the second; `-` for none.

    >>> event_time(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)), event_time(None)
    ('1970-01-01 00:00:01', '-')
    """
    return "-" if watermark is None else f"{watermark:%Y-%m-%d %H:%M:%S}"


def milliseconds(value: float) -> str:
    """Format milliseconds in at most six characters.

    >>> milliseconds(7.42), milliseconds(742.0), milliseconds(123_456.0)
    ('7.4', '742', '123k')
    """
    return f"{value:.1f}" if value < 10 else f"{value:.0f}" if value < 1e5 else short_number(value)


def short_number(value: float) -> str:
    """Format a number in at most six characters.

    >>> short_number(7.4), short_number(999.7), short_number(12_345.0), short_number(999_900.0), short_number(2_500_000_000.0)
    ('7', '1k', '12.3k', '1M', '2.5G')
    """
    for suffix, factor in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= factor * 0.9995:
            return f"{value / factor:.3g}{suffix}" if value < 999.5 * factor else f"{value / factor:.0f}{suffix}"
    return f"{value:.0f}"


def short_bytes(count: int) -> str:
    """Format bytes in at most eight characters.

    >>> short_bytes(0), short_bytes(1500), short_bytes(5 * 2**30)
    ('0 B', '1.46 KiB', '5 GiB')
    """
    for suffix, factor in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= factor:
            return f"{count / factor:.3g} {suffix}" if count < 999.5 * factor else f"{count / factor:.0f} {suffix}"
    return f"{count} B"
