"""The secrets that this process has looked up, and texts without them.

Invariant: once a value has been learned, no error of evenflow, log record or line on stderr of this process contains it, also not
percent-encoded, in base64, or as the password of a longer address. `redacted_output.py` applies that to what libraries write.

>>> learn("s3cret/key")
>>> redacted("refused: s3cret/key, s3cret%2Fkey, Basic bWU6czNjcmV0L2tleQ==")
'refused: ***, ***, Basic bWU6***Q=='
>>> redacted("no route to ftp://me:hunter2@host/in")
'no route to ftp://me:***@host/in'
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from functools import cache
from urllib.parse import quote, quote_plus, unquote

MASK = "***"

SHORT = 4
"""Fewer characters are hidden only as whole words: a password `a` must not remove each `a` from all texts."""

_LINE = 16
"""The fewest characters of a line of a secret, such as a private key, that is hidden without the other lines."""

_IN_BASE64 = 8
"""The fewest characters in base64 that are hidden: fewer may occur by chance."""

_LOGIN = re.compile(r"(?<=://)([^/\s:@]*):(?!\$\{secret:)([^/\s@]+)@")
"""User and password of an address, unless the password is a placeholder."""

_NAMED = re.compile(r"""(?:password|passwd|pwd|secret|token|key|sig|signature)["']?\s*[=:]\s*["']?([^\s&;,'"]+)""", re.IGNORECASE)
"""The value of an option whose name says that it is secret, as in connection strings and signed addresses."""

_forms: dict[str, None] = {}
_pattern: re.Pattern[str] | None = None


def learn(value: str) -> None:
    """Hide a secret from now on in all texts of this process, in each form in which a library may quote it."""
    global _pattern  # noqa: PLW0603 -- the knowledge of the process
    if value in _forms or not value:
        return
    _forms.update(dict.fromkeys(form for part in _parts(value) for form in _encoded(part) if form))
    known: list[str] = []
    while len(known) < len(_forms):  # another thread may learn one meanwhile, and set its pattern earlier
        known = list(_forms)
        _pattern = re.compile("|".join(map(_expression, sorted(known, key=len, reverse=True))))


def redacted(text: str) -> str:
    """Return a text without the secrets that this process has learned, and without passwords in addresses."""
    if _pattern is not None:
        text = _pattern.sub(MASK, text)
    return _LOGIN.sub(rf"\1:{MASK}@", text) if "://" in text else text


def _expression(form: str) -> str:
    return re.escape(form) if len(form) >= SHORT else rf"(?<!\w){re.escape(form)}(?!\w)"


def _parts(value: str) -> Iterator[str]:
    """Yield the secret, and the secrets in it: the password of an address, the values of options, long lines."""
    yield value
    for _, password in _LOGIN.findall(value):
        yield password
    yield from _NAMED.findall(value)
    lines = value.splitlines()
    yield from (line for line in lines if len(lines) > 1 and len(line) >= _LINE)


@cache
def _encoded(part: str) -> frozenset[str]:
    plain = {part, unquote(part)}
    found = set(plain)
    for text in plain:
        found |= {quote(text), quote(text, safe=""), quote_plus(text), repr(text)[1:-1], json.dumps(text)[1:-1]}
        found.update(_in_base64(text.encode()))
    return frozenset(found)


def _in_base64(data: bytes) -> Iterator[str]:
    """Yield the characters in base64 that the data alone determines, for each position at which a longer value may contain it."""
    for before in range(3):
        first, behind = -(-before * 8 // 6), (before + len(data)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = encode(bytes(before) + data)[first:behind].decode()
            if len(text) >= _IN_BASE64:
                yield text
