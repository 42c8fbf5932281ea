"""Whom the page's server refuses."""

from __future__ import annotations

import socket

import pytest
from serving_pages import with_server

from evenflow.engine.errors import ClusterError
from evenflow.page.hub import Hub
from evenflow.page.live import Live
from evenflow.page.server import serving

PATHS = ("/", "/events", "/static/page.js", "/static/vendor/htm-preact.module.js", "/nothing")


def answers(path, method="GET", **headers):
    """Return the status and the headers of one response."""
    found = []

    async def test(browser):
        response = await browser.ask(path, method, **headers)
        found.extend((response.status, response.headers))

    with_server(Hub(), test)
    return found


@pytest.mark.parametrize("path", PATHS)
def test_without_token_there_is_nothing(path):
    status, _ = answers(path, stranger=True)
    assert status == 401


@pytest.mark.parametrize("path", ["/?token=", "/?token=guess", "/events?token=guess"])
def test_wrong_token_opens_nothing(path):
    status, headers = answers(path, stranger=True)
    assert status == 401
    assert "Set-Cookie" not in headers


def test_token_becomes_a_cookie_and_leaves_the_address():
    async def test(browser):
        response = await browser.ask(f"/?token={browser.guard.token}&job=clicks", stranger=True)
        assert (response.status, response.headers["Location"]) == (303, "/?job=clicks")
        cookie = response.headers["Set-Cookie"]
        assert f"{browser.guard.cookie}={browser.guard.token}" in cookie
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie

    with_server(Hub(), test)


def test_token_opens_the_start_page_alone():
    async def test(browser):
        for path in ("/events", "/static/page.js"):
            response = await browser.ask(f"{path}?token={browser.guard.token}", stranger=True)
            assert response.status == 401

    with_server(Hub(), test)


def test_cookie_opens_the_page_and_its_files():
    async def test(browser):
        for path, kind in (("/", "html"), ("/static/page.js", "javascript"), ("/static/page.css", "css")):
            response = await browser.ask(path)
            assert (response.status, response.content_type.rpartition("/")[2]) == (200, kind)

    with_server(Hub(), test)


def test_a_name_that_resolves_to_this_machine_is_no_way_in():
    async def test(browser):
        port = browser.guard.port
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1:1", f"127.0.0.1.evil.example:{port}", "127.0.0.1"):
            assert (await browser.ask("/", Host=host)).status == 403
        assert (await browser.ask("/", Host=f"localhost:{port}")).status == 200

    with_server(Hub(), test)


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("path", PATHS)
def test_pages_of_other_sites_can_not_ask(path, site):
    status, _ = answers(path, Sec_Fetch_Site=site)
    assert status == 403


@pytest.mark.parametrize("site", ["none", "same-origin"])
def test_the_user_and_the_page_itself_can(site):
    status, _ = answers("/", Sec_Fetch_Site=site)
    assert status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
@pytest.mark.parametrize("path", ["/", "/events"])
def test_nothing_can_be_changed(path, method):
    status, _ = answers(path, method)
    assert status == 405


@pytest.mark.parametrize(
    "path", ["/static/../guard.py", "/static/%2e%2e/guard.py", "/static/..%2fguard.py", "/static//etc/passwd", "/static/"]
)
def test_files_are_those_of_the_page(path):
    status, _ = answers(path)
    assert status in (403, 404)


@pytest.mark.parametrize(
    ("path", "stranger"), [("/", False), ("/events", False), ("/static/page.js", False), ("/nothing", False), ("/", True)]
)
def test_every_answer_forbids_what_is_not_from_here(path, stranger):
    _, headers = answers(path, stranger=stranger)
    rules = headers["Content-Security-Policy"]
    assert "default-src 'none'" in rules
    assert "frame-ancestors 'none'" in rules
    assert "unsafe" not in rules
    assert "http" not in rules
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"


def test_only_this_machine_is_served():
    async def test(browser):
        with socket.socket() as other, pytest.raises(ConnectionRefusedError):
            other.connect(("127.0.0.2", browser.guard.port))  # loopback too, but not the address that is listened at

    with_server(Hub(), test)


def test_a_port_that_is_taken_is_named():
    async def test(browser):
        with pytest.raises(ClusterError, match=f"port {browser.guard.port}: "):
            async with serving(Live(Hub()), browser.guard.port):
                pass

    with_server(Hub(), test)
