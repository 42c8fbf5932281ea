"""The pictures of the page in docs/images: a job whose hot keys change, and its page in a browser, light and dark.

The job runs in a thread of this process, and a coordinator's views go to the page by the same way as those of a job on Ray.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import evenflow as ef
from evenflow.actors.local import LocalJob
from evenflow.engine.errors import JobBusyError
from evenflow.scheduler.job.requests import Cancel, Move, Scale, ShowView
from evenflow.ui.guard import Guard
from evenflow.ui.heard import Viewed
from evenflow.ui.hub import Hub
from evenflow.ui.live import Live
from evenflow.ui.server import serving

IMAGES = Path(__file__).parents[1] / "docs" / "images"
SECONDS = 100
CHANGES = ((45, Scale("per_second", 3)), (70, Move("sessions", tuple(range(24)), (), 2, None)))
"""What a person asks for, and the second from which on."""


def flow() -> ef.Dataflow:
    """Sessions of users, of whom some are more active than others, and counts per second."""

    def update(state: int | None, row: dict[str, object]) -> tuple[int, dict[str, object]]:
        for _ in range(800):
            row["value"] = -row["value"]
        return (state or 0) + 1, {"user": row["key"], "n": state or 0}

    clicks = ef.Dataflow("clicks")
    rows = clicks.read(ef.generate(rate=2_000, every="20ms", keys=1_000, zipf=1.0, string_keys=True, name="read"))
    rows.key_by("key").stateful_map(update).named("sessions").parallelism(3).write(ef.to_callback(lambda _: None, name="alerts"))
    per_second = rows.key_by("key").window(ef.tumbling("1s")).aggregate(n=ef.count()).named("per_second").parallelism(2)
    per_second.write(ef.to_callback(lambda _: None, name="dashboard"))
    return clicks


async def follow(job: LocalJob, hub: Hub) -> None:
    """As the follower does, and the changes when it is time for them."""
    begun, since, changes = time.monotonic(), 0.0, list(CHANGES)
    while (passed := time.monotonic() - begun) < SECONDS:
        view = await asyncio.to_thread(job.ask, ShowView(since))
        since = view.now - 3
        hub.hear(Viewed("clicks", view))
        if changes and changes[0][0] < passed:
            with suppress(JobBusyError):  # the balancer is moving keys just now
                job.ask(changes[0][1])
                changes.pop(0)
        await asyncio.sleep(1)


def photograph(guard: Guard) -> None:
    """The whole page, and the top of it, light and dark."""
    from playwright.sync_api import sync_playwright

    program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1240, "height": 1000}, color_scheme="light")
        page.goto(guard.address)
        page.locator("#graph svg").wait_for()
        for name, scheme, whole in (("page", "light", True), ("page-top", "light", False), ("page-dark", "dark", False)):
            page.emulate_media(color_scheme=scheme)
            page.wait_for_timeout(1_500)
            page.screenshot(path=IMAGES / f"{name}.png", full_page=whole)
        browser.close()


async def main() -> None:
    """Run the job, then photograph what the page shows of it."""
    with tempfile.TemporaryDirectory() as folder:
        config = ef.JobConfig(
            key_groups=128,
            balance=ef.BalanceConfig("hotspot", threshold=1.15, least_busy=0.02, after="8s", cooldown="15s"),
            checkpoint=ef.CheckpointConfig(interval="10s", dir=folder),
        )
        job, hub = LocalJob(flow().plan(config=config), config), Hub()
        async with serving(Live(hub), 0) as guard:
            await follow(job, hub)
            await asyncio.to_thread(photograph, guard)
        job.ask(Cancel())
        job.close()


if __name__ == "__main__":
    asyncio.run(main())
    sys.stdout.write(f"pictures are in {IMAGES}\n")
