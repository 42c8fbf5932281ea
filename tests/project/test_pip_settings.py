"""The environment is made through the mirror and the proxy of the reader's pip settings."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

PATH = Path(__file__).parents[2] / ".ci" / "pip_settings.py"
spec = importlib.util.spec_from_file_location("pip_settings", PATH)
pip_settings = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pip_settings)

BEST_MATCH = {"UV_INDEX_STRATEGY": "unsafe-best-match"}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param([], {}, id="nothing is set"),
        pytest.param(["global.index-url='https://mirror/simple'"], {"UV_DEFAULT_INDEX": "https://mirror/simple"}, id="a mirror"),
        pytest.param(["global.proxy='http://proxy:3128'"], {"ALL_PROXY": "http://proxy:3128"}, id="a proxy"),
        pytest.param(["global.cert='/a.pem'", ":env:.cert='/b.pem'"], {"SSL_CERT_FILE": "/b.pem"}, id="the environment outranks the file"),
        pytest.param([":env:.cert='/b.pem'", "global.cert='/a.pem'"], {"SSL_CERT_FILE": "/b.pem"}, id="in any order"),
        pytest.param(["global.find-links='/a /b'"], {"UV_FIND_LINKS": "/a,/b"}, id="uv separates folders of wheels by commas"),
        pytest.param(["global.extra-index-url='https://a https://b'"], {"UV_INDEX": "https://a https://b"}, id="and indexes by spaces"),
        pytest.param(["download.cert='/c.pem'", "global.quiet='1'", "noise"], {}, id="other settings are ignored"),
    ],
)
def test_settings_of_pip_become_settings_of_uv(lines, expected):
    assert pip_settings.settings(lines, {}) == {**BEST_MATCH, **expected}


def test_settings_of_the_environment_for_uv_stay():
    lines = ["global.index-url='https://mirror/simple'"]
    assert pip_settings.settings(lines, {"UV_DEFAULT_INDEX": "https://mine.example", "UV_INDEX_STRATEGY": "first-index"}) == {}
