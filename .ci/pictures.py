"""Creates the pictures of the page in docs/images: the pages of the tutorial's job, of hot keys that change, and of an upgrade.

The job runs in a thread of this process, and a coordinator's views reach the page in the same way as those of a job on Ray.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import evenflow as ef
from evenflow.actors.local import LocalJob
from evenflow.actors.processes.stack_samples import own_stacks
from evenflow.engine.errors import JobBusyError
from evenflow.page.actions import SAMPLED_SECONDS, Action, begun
from evenflow.page.guard import Guard
from evenflow.page.hub import Hub
from evenflow.page.live import Live
from evenflow.page.messages import Viewed
from evenflow.page.queries import Answer
from evenflow.page.replay import Replay
from evenflow.page.server import serving
from evenflow.recording.file import Recording, RecordingWriter
from evenflow.scheduler.job.view_cursor import ViewCursor
from evenflow.scheduler.protocol.requests import Cancel, MoveKeys, Scale, ShowView
from evenflow.scheduler.protocol.upgrade_options import UpgradeOptions
from evenflow.scheduler.protocol.view import JobView
from evenflow.upgrades import begin

if TYPE_CHECKING:
    from playwright.sync_api import Page

DOCS = Path(__file__).parents[1] / "docs"
IMAGES, TUTORIAL = DOCS / "images", DOCS / "tutorial" / "5-a-live-job.md"
SECONDS = 100
CHANGES = ((45, Scale("per_second", 3)), (70, MoveKeys("sessions", tuple(range(24)), (), 2, None)))
"""A user's requests, with the second of each."""

UPGRADED, WATCHED = 45, 25
"""Seconds of the old code alone, and then of both versions until the picture is taken."""

HOT, SHOWN = 60, 20
"""Seconds until the hot keys of the tutorial's job appear, and from the move of one of them until the picture is taken."""


def tutorial_flow() -> ef.Dataflow:
    """Return the flow of the tutorial's last program, with a sink that needs no folder."""
    (code,) = re.findall(r"^```python\n(.*?)^flow\.run", TUTORIAL.read_text(), re.DOTALL | re.MULTILINE)
    space: dict[str, ef.Dataflow] = {}
    exec(code.replace('ef.write_parquet("totals/")', 'ef.to_callback(lambda _: None, name="write_parquet")'), space)  # noqa: S102 -- a program of our own
    return space["flow"]


def flow(*, upgraded: bool = False) -> ef.Dataflow:
    """Return sessions of users, some more active than others, and counts per second. Some clicks are rejected.

    `upgraded`: sessions tell the value of their last click too.
    """

    def update(state: int | None, row: dict[str, object]) -> tuple[int, dict[str, object]]:
        for _ in range(800):
            row["value"] = -row["value"]
        return (state or 0) + 1, {"user": row["key"], "n": state or 0}

    def update_with_value(state: int | None, row: dict[str, object]) -> tuple[int, dict[str, object]]:
        for _ in range(800):
            row["value"] = -row["value"]
        return (state or 0) + 1, {"user": row["key"], "n": state or 0, "value": row["value"]}

    def checked(row: dict[str, object]) -> dict[str, object]:
        if row["seq"] % 997 == 0:
            raise ValueError("a click without a page")
        return row

    clicks = ef.Dataflow("clicks")
    read = clicks.read(ef.generate(rate=2_000, every="20ms", keys=1_000, zipf=1.0, string_keys=True, name="read"))
    rows = read.map(checked, on_error="skip").named("checked")
    sessions = rows.key_by("key").stateful_map(update_with_value if upgraded else update).named("sessions").parallelism(3)
    sessions.write(ef.to_callback(lambda _: None, name="alerts"))
    per_second = rows.key_by("key").window(ef.tumbling("1s")).aggregate(n=ef.count()).named("per_second").parallelism(2)
    per_second.write(ef.to_callback(lambda _: None, name="dashboard"))
    return clicks


async def follow(job: LocalJob, hub: Hub, cursor: ViewCursor, seconds: float, seen: Callable[[float, JobView], None]) -> None:
    """Follow the job for some seconds as the page's process does; `seen` gets the time passed and each view."""
    begun = time.monotonic()
    while (passed := time.monotonic() - begun) < seconds:
        view = await asyncio.to_thread(job.ask, ShowView(cursor.since))
        cursor.advance(view)
        hub.receive(Viewed(view.status.name, view))
        seen(passed, view)
        await asyncio.sleep(1)


async def act(_job: str, request: Action) -> Answer:
    """Answer an action in place of a worker's process: all workers run in this one."""
    stacks, problem = await asyncio.to_thread(own_stacks, None, SAMPLED_SECONDS)
    return {"problem": problem} if problem else {"done": begun(request, None), "stacks": stacks}


@contextmanager
def page_of(guard: Guard) -> Iterator[Page]:
    """Open the page in a browser."""
    from playwright.sync_api import sync_playwright

    program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1240, "height": 1000}, color_scheme="light")
        page.goto(guard.address)
        page.locator("#graph svg").wait_for()
        yield page
        browser.close()


def photograph(guard: Guard) -> None:
    """Take pictures of the whole page, of its top in light and dark, and of the dialog for a rebalance."""
    with page_of(guard) as page:
        for name, scheme, whole in (("page", "light", True), ("page-top", "light", False), ("page-dark", "dark", False)):
            page.emulate_media(color_scheme=scheme)
            page.wait_for_timeout(1_500)
            page.screenshot(path=IMAGES / f"{name}.png", full_page=whole)
        page.emulate_media(color_scheme="light")
        page.locator("#loads").get_by_role("button", name="Rebalance…").first.click()
        page.locator("dialog input").first.check()
        page.locator("dialog").screenshot(path=IMAGES / "page-rebalance.png")
        page.locator("dialog").get_by_role("button", name="Cancel").click()
        page.locator("#operators summary").click()
        page.locator("#operators .left tbody tr").first.wait_for()
        page.locator("#operators").screenshot(path=IMAGES / "page-operators.png")
        page.locator("#operators").get_by_role("button", name="Flame graph…").click()
        page.locator("dialog .plan").wait_for()
        page.locator("dialog .go").click()
        page.locator("dialog .flame button", has_text="LocalJob._work").first.click()
        page.locator("dialog").screenshot(path=IMAGES / "page-flame.png")


def photograph_replay(guard: Guard) -> None:
    """Take a picture of the recording's page, at the second at which a worker has joined."""
    with page_of(guard) as page:
        slider = page.locator("#replay input")
        slider.evaluate(
            "(slider, at) => { slider.value = Number(slider.min) + at; slider.dispatchEvent(new Event('input')); }", CHANGES[0][0] + 8
        )
        page.wait_for_timeout(3_000)
        page.screenshot(path=IMAGES / "page-replay.png", clip={"x": 0, "y": 0, "width": 1240, "height": 760})


def photograph_upgrade(guard: Guard) -> None:
    """Take a picture of the page while the new code of a job is watched: the key groups in two hues, and both versions side by side."""
    with page_of(guard) as page:
        page.locator("#upgrades .track").wait_for()
        page.locator("#heat .tabs button", has_text="1 min").click()
        page.wait_for_timeout(1_500)
        box = page.locator("#upgrades").bounding_box()
        assert box is not None
        page.screenshot(path=IMAGES / "page-upgrade.png", clip={"x": 0, "y": 0, "width": 1240, "height": box["y"] + box["height"] + 12})


def photograph_hot_key(guard: Guard) -> None:
    """Take a picture of the page's top: the key groups over time, and the loads."""
    with page_of(guard) as page:
        page.wait_for_timeout(1_500)
        box = page.locator("#loads").bounding_box()
        assert box is not None
        page.screenshot(path=IMAGES / "page-hot-key.png", clip={"x": 0, "y": 0, "width": 1240, "height": box["y"] + box["height"] + 12})


async def show_changes() -> None:
    """Run the job whose hot keys change, then take pictures of its page and its recording."""
    with tempfile.TemporaryDirectory() as folder:
        config = ef.JobConfig(
            key_groups=128,
            balance=ef.BalanceConfig("hotspot", threshold=1.15, least_busy=0.02, after="8s", cooldown="15s"),
            checkpoint=ef.CheckpointConfig(interval="10s", dir=folder),
        )
        job, guard, file = LocalJob(flow().plan(config=config), config), Guard(allow_actions=True), Path(folder) / "clicks.rec"
        hub = Hub(actions=guard.action_token)
        async with serving(Live(hub, act), 0, guard):
            with RecordingWriter(file, "clicks", time.time()) as recording:
                changes = list(CHANGES)

                def seen(passed: float, view: JobView) -> None:
                    recording.add(view)
                    if changes and changes[0][0] < passed:
                        with suppress(JobBusyError):  # the balancer is moving keys just now
                            job.ask(changes[0][1])
                            changes.pop(0)

                await follow(job, hub, ViewCursor(), SECONDS, seen)
            await asyncio.to_thread(photograph, guard)
        job.ask(Cancel())
        job.close()
        async with serving(Replay(Recording(file)), 0) as guard:
            await asyncio.to_thread(photograph_replay, guard)


async def show_upgrade() -> None:
    """Run the job that is upgraded, then take a picture of its page while the new code is watched."""
    config = ef.JobConfig(key_groups=64)
    job, guard, hub, cursor = LocalJob(flow().plan(config=config), config), Guard(allow_actions=False), Hub(), ViewCursor()
    async with serving(Live(hub), 0, guard):
        await follow(job, hub, cursor, UPGRADED, lambda *_: None)
        options = UpgradeOptions(canary=0.25, watch=4.0 * WATCHED)
        await asyncio.to_thread(begin, job, flow(upgraded=True), options, everything=False, environment=None)
        await follow(job, hub, cursor, WATCHED, lambda *_: None)
        await asyncio.to_thread(photograph_upgrade, guard)
    job.ask(Cancel())
    job.close()


async def show_hot_key() -> None:
    """Run the job of the tutorial until a hot key has moved, then take a picture of its page."""
    config = ef.JobConfig()
    job, guard, hub = LocalJob(tutorial_flow().plan(config=config), config), Guard(allow_actions=False), Hub()
    async with serving(Live(hub), 0, guard):
        moved, cursor = False, ViewCursor()

        def seen(_passed: float, view: JobView) -> None:
            nonlocal moved
            moved |= any(migration.over for migration in view.migrations)

        await follow(job, hub, cursor, HOT, seen)
        while not moved:
            await follow(job, hub, cursor, 1, seen)
        await follow(job, hub, cursor, SHOWN, seen)
        await asyncio.to_thread(photograph_hot_key, guard)
    job.ask(Cancel())
    job.close()


async def main() -> None:
    """Take all pictures."""
    await show_hot_key()
    await show_changes()
    await show_upgrade()


if __name__ == "__main__":
    asyncio.run(main())
    sys.stdout.write(f"pictures are in {IMAGES}\n")
