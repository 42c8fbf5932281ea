"""A real browser for tests of the page: Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from patience import patience
from playwright.sync_api import Browser, Page, expect, sync_playwright

expect.set_options(timeout=patience(60_000))

NAMES = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str:
    """Return the path of Chromium; the test fails, and says what to install, if there is none."""
    found = next(filter(None, (os.environ.get("CHROMIUM"), *map(shutil.which, NAMES))), None)
    if found is None:
        pytest.fail("no Chromium: install it (Debian and Ubuntu: sudo apt-get install chromium), or set CHROMIUM to its path")
    return found


@contextmanager
def browser() -> Iterator[Browser]:
    """Start a new browser, without a user's data."""
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"], timeout=patience(60_000))
        try:
            yield running
        finally:
            running.close()


def complaints(page: Page) -> list[str]:
    """Collect a page's problems from now on: errors and warnings on its console, and uncaught errors."""
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    return said
