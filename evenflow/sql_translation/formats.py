"""Formats of times: sqlglot's, which its Hive parser has made of Java's, for `strftime`.

>>> python_format("%Y-%m-%d %H:%M")
'%Y-%m-%d %H:%M'
"""

from __future__ import annotations


def python_format(form: str) -> str:
    """Return the format for `strftime`. The parser marks formats of two digits as strict, which they are here."""
    return form.replace("strict", "")
