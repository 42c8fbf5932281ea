"""Prints pip's settings as settings for uv: `eval "$(pip config list | python .ci/pip_settings.py)"`.

uv does not read pip's configuration. If you use a mirror, a proxy or your own certificate, pip knows it, and you need not
configure it again. Settings for uv itself are kept.
"""

from __future__ import annotations

import ast
import os
import shlex
import sys
from collections.abc import Iterable, Mapping

NAMES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "proxy": "ALL_PROXY",
    "cert": "SSL_CERT_FILE",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "timeout": "UV_HTTP_TIMEOUT",
}
SECTIONS = ("global", "install", ":env:")
"""Sections in ascending precedence, as in pip."""


def settings(lines: Iterable[str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return uv's environment variables for the lines of `pip config list`, such as
    `global.index-url='https://mirror.example/simple'`.
    """
    found: dict[tuple[str, str], str] = {}
    for line in lines:
        name, equals, value = line.strip().partition("=")
        section, _, key = name.rpartition(".")
        if equals and section in SECTIONS and key in NAMES:
            found[key, section] = str(ast.literal_eval(value))
    # pip asks every index for every package; uv would stop at the first index with the package, for any of its versions.
    given = {"UV_INDEX_STRATEGY": "unsafe-best-match"}
    for section in SECTIONS:
        for key, variable in NAMES.items():
            if value := found.get((key, section)):
                given[variable] = ",".join(value.split()) if key == "find-links" else value
    return {variable: value for variable, value in given.items() if variable not in environment}


if __name__ == "__main__":
    for variable, value in settings(sys.stdin, os.environ).items():
        print(f"export {variable}={shlex.quote(value)}")
