"""Secrets in addresses and options: a program carries a placeholder, and the process that needs the secret looks it up.

So plans and checkpoints contain the placeholder only. A process that has looked a secret up keeps it out of its errors and logs
(`state/known_secrets.py`).

>>> import os
>>> url = f"postgresql://shop:{secret('env:SHOP_PASSWORD')}@db/shop"
>>> url
'postgresql://shop:${secret:env:SHOP_PASSWORD}@db/shop'
>>> os.environ["SHOP_PASSWORD"] = "p@ss"
>>> revealed_url(url)
'postgresql://shop:p%40ss@db/shop'
>>> print(ConnectorError("no user with p@ss or p%40ss"))
no user with *** or ***
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..state.redacted_output import guard
from .errors import ConnectorError, FlowError

_PLACEHOLDER = re.compile(r"\$\{secret:(env|file):([^}]+)\}")


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


def has_secret(text: str) -> bool:
    """Return True if the text contains a placeholder."""
    return _PLACEHOLDER.search(text) is not None


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
        guard(value)
    return value
