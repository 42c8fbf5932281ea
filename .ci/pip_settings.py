"""Prints pip's settings as settings for uv: `eval "$(pip config list | python .ci/pip_settings.py)"`.

uv does not read pip's configuration. If you reach packages through a mirror, a proxy or a certificate of your own, pip knows it, and you
need not say it again. What you have set for uv itself stays.
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
"""Each outranks those before it, as in pip."""


def settings(lines: Iterable[str], environment: Mapping[str, str]) -> dict[str, str]:
    """uv's environment variables for the lines of `pip config list`, such as `global.index-url='https://mirror.example/simple'`."""
    found: dict[tuple[str, str], str] = {}
    for line in lines:
        name, equals, value = line.strip().partition("=")
        section, _, key = name.rpartition(".")
        if equals and section in SECTIONS and key in NAMES:
            found[key, section] = str(ast.literal_eval(value))
    # pip asks every index for every package; uv would stop at the first index that knows the package, whatever its versions.
    given = {"UV_INDEX_STRATEGY": "unsafe-best-match"}
    for section in SECTIONS:
        for key, variable in NAMES.items():
            if value := found.get((key, section)):
                given[variable] = ",".join(value.split()) if key == "find-links" else value
    return {variable: value for variable, value in given.items() if variable not in environment}


if __name__ == "__main__":
    for variable, value in settings(sys.stdin, os.environ).items():
        print(f"export {variable}={shlex.quote(value)}")
