"""The page of a job with more workers than fit on it."""

from __future__ import annotations

import asyncio

from browsing import chromium
from patience import patience
from playwright.async_api import async_playwright, expect

from evenflow.bench.wide.crowd import KEYED, Crowd
from evenflow.bench.wide.loads import Loads
from evenflow.bench.wide.measures import changes, live_second
from evenflow.bench.wide.page import shown
from evenflow.page.guard import Guard
from evenflow.page.hub import Hub
from evenflow.page.live import Live
from evenflow.page.messages import Viewed
from evenflow.page.server import serving
from evenflow.scheduler.protocol.requests import ShowView

WORKERS, SOURCES, KEY_GROUPS = 200, 2, 1024


def test_the_hottest_and_the_coolest_of_many_workers_are_shown():
    asyncio.run(_show())


async def _show():
    crowd, loads = Crowd(WORKERS, SOURCES, KEY_GROUPS), Loads(KEY_GROUPS)
    live_second(crowd, loads)
    list(changes(crowd))  # keys of every worker move
    live_second(crowd, loads)
    guard, hub, said = Guard(), Hub(), list[str]()
    hub.receive(Viewed("wide", crowd.ask(ShowView())))
    async with serving(Live(hub), 0, guard), async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = await browser.new_page()
        page.on("pageerror", lambda error: said.append(str(error)))
        await page.goto(guard.address)
        await expect(page.locator("#loads .bars .name")).to_have_count(40, timeout=patience(30_000))
        await expect(page.locator("#loads")).to_contain_text("the 32 hottest and the 8 coolest workers; 160 others")
        await expect(page.locator("#graph text.name")).to_have_text(["generate", KEYED])
        await browser.close()
    assert not said


def test_the_time_of_the_page_in_the_browser_is_measured():
    figures = list(shown(Crowd(4, SOURCES, 64), Loads(64), 1, chromium()))
    assert [(name, unit) for name, unit, _ in figures] == [("script of the page", "ms/s"), ("page in the browser", "ms/s")]
    assert 0 < figures[0][2] <= figures[1][2]
