"""The time that the page of a wide job takes in a browser: Chromium's own count of script, layout and style, second by second."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from statistics import median

from ...page.guard import Guard
from ...page.hub import Hub
from ...page.live import Live
from ...page.messages import Viewed
from ...page.server import serving
from ...scheduler.job.view_cursor import ViewCursor
from ...scheduler.protocol.requests import ShowView
from ..harness.errors import BenchmarkError
from .crowd import Crowd
from .loads import Loads
from .measures import Figures, live_second

WARM_UP = 5
"""Seconds of the job that are shown before they are measured."""

PARTS = {"script of the page": ("ScriptDuration",), "page in the browser": ("ScriptDuration", "LayoutDuration", "RecalcStyleDuration")}


def shown(crowd: Crowd, loads: Loads, seconds: int, chromium: str) -> Figures:
    """Measure the seconds of a job on its page. Raises BenchmarkError without playwright, or if the browser doesn't start."""
    for name, values in asyncio.run(_measured(crowd, loads, seconds, chromium)).items():
        yield name, "ms/s", median(values)


async def _measured(crowd: Crowd, loads: Loads, seconds: int, chromium: str) -> Mapping[str, list[float]]:
    try:
        from playwright.async_api import Error, async_playwright
    except ImportError as error:
        raise BenchmarkError("the page is measured with playwright: pip install playwright") from error
    guard, hub, cursor = Guard(), Hub(), ViewCursor()
    spent: dict[str, list[float]] = {name: [] for name in PARTS}
    async with serving(Live(hub), 0, guard), async_playwright() as playwright:
        try:
            browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        except Error as error:
            raise BenchmarkError(f"the browser {chromium} doesn't start: {error.message.splitlines()[0]}") from error
        page = await browser.new_page(viewport={"width": 1240, "height": 1000})
        counts = await page.context.new_cdp_session(page)
        await counts.send("Performance.enable")
        await page.goto(guard.address)
        before: Mapping[str, float] = {}
        for second in range(WARM_UP + seconds):
            live_second(crowd, loads)
            view = crowd.ask(ShowView(cursor.since))
            cursor.advance(view)
            hub.receive(Viewed("wide", view))
            await asyncio.sleep(1.0)
            found = await counts.send("Performance.getMetrics")
            now = {each["name"]: each["value"] for each in found["metrics"]}
            if second >= WARM_UP:
                for name, parts in PARTS.items():
                    spent[name].append(sum(now[part] - before[part] for part in parts) * 1000)
            before = now
        await browser.close()
    return spent
