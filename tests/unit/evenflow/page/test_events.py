"""Browsers get the whole history of a real job first, then what is new."""

from __future__ import annotations

import base64
from dataclasses import replace

import numpy as np
import pytest
from serving_pages import message, with_server

import evenflow as ef
from evenflow.page.hub import BACKLOG, KEPT, Hub
from evenflow.page.messages import Quiet, Unlinked, Viewed
from evenflow.scheduler.protocol.effects import JobState
from evenflow.scheduler.protocol.requests import ShowView


@pytest.fixture(scope="module")
def view():
    """Return the view of a finished job with its windows, as if it still ran."""
    flow = ef.Dataflow("clicks")
    rows = flow.read(ef.generate(total=200_000, keys=50, zipf=1.0, string_keys=True))
    rows.key_by("key").aggregate(n=ef.count()).named("count").write(ef.to_list([]))
    job = flow.run(runtime="local", config=ef.JobConfig(parallelism=2, key_groups=16, metrics=ef.MetricsConfig(window="50ms")))
    job.wait("60s")
    told = job._runtime.ask(ShowView())
    return replace(told, status=replace(told.status, state=JobState.RUNNING))


def test_a_page_gets_the_whole_and_then_what_is_new(view):
    hub = Hub()
    hub.receive(Viewed("clicks", view))

    async def test(browser):
        events = await browser.events()
        first = await message(events)
        assert (first["job"], first["whole"], first["jobs"]) == ("clicks", True, ["clicks"])
        assert first["link"]["state"] == "live"
        assert sum(second["rate"] for second in first["seconds"]) == pytest.approx(200_000, abs=len(first["seconds"]))
        hub.receive(Viewed("clicks", view))
        later = await message(events)
        assert "whole" not in later
        assert later["seconds"] == []  # these windows were there already

    with_server(hub, test)


def test_loads_of_the_key_groups_are_those_that_the_workers_measured(view):
    hub = Hub()
    hub.receive(Viewed("clicks", view))
    columns = [second["stages"]["count"] for second in hub.histories["clicks"].whole()["seconds"]]
    shown = sum(np.frombuffer(base64.b64decode(column["load"]), "<f4").sum() for column in columns)
    measured = sum(window.load.sum() for window in view.windows if window.worker.startswith("count-"))
    assert measured > 0
    assert shown == pytest.approx(measured, rel=1e-4)


def test_all_tabs_receive_a_view(view):
    hub = Hub()

    async def test(browser):
        tabs = [await browser.events("/events?job=clicks") for _ in range(3)]
        for tab in tabs:
            assert (await message(tab))["link"]["state"] == "waiting"
        hub.receive(Viewed("clicks", view))
        assert [(await message(tab))["status"]["state"] for tab in tabs] == ["running"] * 3

    with_server(hub, test)


def test_a_page_that_came_before_any_job_gets_the_first(view):
    hub = Hub()

    async def test(browser):
        events = await browser.events()
        assert "no job runs" in (await message(events))["link"]["text"]
        hub.receive(Viewed("clicks", view))
        told = await message(events)
        assert (told["job"], told["whole"]) == ("clicks", True)

    with_server(hub, test)


def test_a_tab_that_can_not_keep_up_gets_the_whole_again(view):
    hub = Hub()
    hub.receive(Viewed("clicks", view))
    slow = hub.listen("clicks")

    async def test(_browser):
        assert "whole" in await hub.next(slow)
        for _ in range(BACKLOG + 5):
            hub.receive(Viewed("clicks", view))
        assert '"whole": true' in await hub.next(slow)
        hub.receive(Viewed("clicks", view))
        assert '"whole"' not in await hub.next(slow)

    with_server(hub, test)


def test_tabs_of_other_jobs_receive_only_the_name_of_a_new_job(view):
    hub = Hub()
    hub.receive(Viewed("clicks", view))

    async def test(browser):
        events = await browser.events("/events?job=clicks")
        await message(events)
        hub.receive(Viewed("orders", view))
        assert await message(events) == {"jobs": ["clicks", "orders"]}

    with_server(hub, test)


@pytest.mark.parametrize("job", ["", "clicks"])
def test_a_job_that_does_not_answer_is_shown_as_lost_and_its_last_view_stays(view, job):
    hub = Hub("clicks")
    hub.receive(Viewed("clicks", view))

    async def test(browser):
        events = await browser.events()
        await message(events)
        hub.receive(Unlinked(job, "lost", "the cluster is gone"))
        told = await message(events)
        assert told["link"] == {"state": "lost", "text": "the cluster is gone"}
        assert told["status"]["state"] == "running"
        hub.receive(Viewed("clicks", view))
        assert (await message(events))["link"]["state"] == "live"

    with_server(hub, test)


def test_a_job_that_has_ended_stays_so_when_its_cluster_goes(view):
    hub = Hub("clicks")
    hub.receive(Viewed("clicks", view))
    hub.receive(Unlinked("clicks", "ended", "it is finished"))
    hub.receive(Unlinked("", "lost", "the cluster is gone"))
    hub.receive(Unlinked("clicks", "waiting", "waits for the job to start"))
    assert hub.histories["clicks"].link == ("ended", "it is finished")


def test_the_last_view_of_a_job_says_that_it_has_ended(view):
    hub = Hub()
    hub.receive(Viewed("clicks", replace(view, status=replace(view.status, state=JobState.FINISHED))))
    assert hub.histories["clicks"].link == ("ended", "the job `clicks` has ended: it is finished")


def test_jobs_that_have_ended_make_room_for_others(view):
    hub = Hub()
    for number in range(KEPT + 5):
        hub.receive(Viewed(f"job-{number}", view))
        if number:
            hub.receive(Unlinked(f"job-{number}", "ended", "it is finished"))
    assert list(hub.histories) == ["job-0", *(f"job-{number}" for number in range(6, KEPT + 5))]


def test_a_tab_that_asks_for_no_job_gets_one_that_runs(view):
    hub = Hub()
    for name in ("clicks", "orders"):
        hub.receive(Viewed(name, view))
    hub.receive(Unlinked("clicks", "ended", "it is finished"))

    async def test(browser):
        assert (await message(await browser.events()))["job"] == "orders"

    with_server(hub, test)


def test_a_sign_of_life_changes_nothing():
    hub = Hub()
    hub.receive(Quiet())
    assert hub.histories == {}
