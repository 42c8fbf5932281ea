"""Secrets in addresses and options: a program carries a placeholder, and the process that needs the secret looks it up.

So plans and checkpoints contain the placeholder only. `hidden` clears the text of a library's error, not the error that is its cause.

>>> import os
>>> url = f"postgresql://shop:{secret('env:SHOP_PASSWORD')}@db/shop"
>>> url
'postgresql://shop:${secret:env:SHOP_PASSWORD}@db/shop'
>>> os.environ["SHOP_PASSWORD"] = "p@ss"
>>> revealed_url(url)
'postgresql://shop:p%40ss@db/shop'
>>> hidden("no user p@ss")
'no user ***'
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .errors import ConnectorError, FlowError

_PLACEHOLDER = re.compile(r"\$\{secret:(env|file):([^}]+)\}")

_SEEN: set[str] = set()
"""The secrets that this process has looked up."""


def secret(reference: str) -> str:
    """Return a placeholder for a secret, to use in the addresses and options of sources and sinks, alone or as a part of a text.

        ef.write_sql(f"postgresql://shop:{ef.secret('env:PG_PASSWORD')}@db/shop", "orders")
        ef.read_kafka("orders", bootstrap="broker:9093", options={"sasl.password": ef.secret("file:/run/secrets/kafka")})

    `reference`: `env:NAME` for a variable of the environment, or `file:PATH` for the content of a file without the line break at its
    end. Each process that connects looks it up, so every node needs it. Raises FlowError for another reference.
    """
    kind, found, where = reference.partition(":") if isinstance(reference, str) else ("", "", "")
    if kind not in ("env", "file") or not found or not where or "}" in where:
        raise FlowError(f"ef.secret({reference!r}): expected env:NAME or file:PATH")
    return f"${{secret:{reference}}}"


def is_secret(text: str) -> bool:
    """Return True if the whole text is a placeholder."""
    return _PLACEHOLDER.fullmatch(text) is not None


def revealed(value: Any) -> Any:
    """Return a value with its secrets: a text, or a dict or list that contains texts. Raises ConnectorError for one that is missing."""
    if isinstance(value, str):
        return _replaced(value, str)
    if isinstance(value, Mapping):
        return {name: revealed(each) for name, each in value.items()}
    return [revealed(each) for each in value] if isinstance(value, (list, tuple)) else value


def revealed_url(url: str) -> str:
    """Return an address with its secrets, which are percent-encoded unless the whole address is one. Raises ConnectorError."""
    return _replaced(url, str if is_secret(url) else lambda value: quote(value, safe=""))


def hidden(text: str) -> str:
    """Return a text without the secrets that this process has looked up."""
    for value in sorted(_SEEN, key=len, reverse=True):
        text = text.replace(value, "***")
    return text


def _replaced(text: str, encode: Callable[[str], str]) -> str:
    return _PLACEHOLDER.sub(lambda found: encode(_looked_up(found[1], found[2])), text) if "${secret:" in text else text


def _looked_up(kind: str, where: str) -> str:
    if kind == "env":
        value = os.environ.get(where)
        if value is None:
            raise ConnectorError(f"the secret env:{where} is missing: this process has no variable {where}; set it on every node")
    else:
        try:
            value = Path(where).read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise ConnectorError(f"the secret file:{where} can't be read: {error}; every node needs the file") from error
    if value:
        _SEEN.update({value, quote(value, safe="")})
    return value
