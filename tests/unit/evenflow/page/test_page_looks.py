"""Pages look at the state of jobs: the request is checked and passed on, and the answer holds texts of a bounded length."""

from __future__ import annotations

import pyarrow as pa
import pytest
from serving_pages import with_server

import evenflow as ef
from evenflow.engine.errors import RequestError
from evenflow.page import looks
from evenflow.page.guard import Guard
from evenflow.page.hub import Hub
from evenflow.page.live import Live
from evenflow.page.looks import FIRST, KeyLook, TableLook, look_of, looked
from evenflow.page.messages import Viewed
from evenflow.scheduler.protocol.effects import JobState
from evenflow.scheduler.protocol.status import JobStatus
from evenflow.scheduler.protocol.view import JobView

VIEW = JobView(10.0, JobStatus("clicks", JobState.RUNNING, None, (), 3, 10.0), (), ())


def served(test, *, sees=True):
    """Run `test(browser)` against a read-only page of the job; return the looks at it."""
    seen = []

    async def see(job, look):
        seen.append((job, look))
        if look == KeyLook("count", 7):
            raise RequestError("its key column `key` is string, and 7 is int64")
        return {"value": "1"}

    hub = Hub("clicks")
    hub.receive(Viewed("clicks", VIEW))
    with_server(Live(hub, None, see if sees else None), test, Guard())
    return seen


def test_a_look_reaches_the_job_and_its_answer_the_page_which_may_be_read_only():
    async def test(browser):
        found = await browser.ask("/key?job=clicks&operator=count&key=JFK")
        assert (found.status, await found.json()) == (200, {"value": "1"})
        await browser.ask("/rows?job=clicks&operator=count")
        refused = await browser.ask("/key?job=clicks&operator=count&key=7")
        assert await refused.json() == {"problem": "its key column `key` is string, and 7 is int64"}
        assert "operator is missing" in await (await browser.ask("/rows?job=clicks")).text()

    assert served(test) == [("clicks", KeyLook("count", "JFK")), ("clicks", TableLook("count")), ("clicks", KeyLook("count", 7))]


@pytest.mark.parametrize("path", ["/key", "/rows"])
@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (401, {"Cookie": ""}),
        (403, {"Sec-Fetch-Site": "cross-site"}),
        (403, {"Sec-Fetch-Site": "same-site"}),
        (403, {"Host": "evil.example"}),
    ],
)
def test_strangers_see_no_state(path, status, headers):
    async def test(browser):
        assert (await browser.ask(f"{path}?job=clicks&operator=count&key=JFK", **headers)).status == status

    assert served(test) == []


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_no_other_method_looks(method):
    async def test(browser):
        assert (await browser.ask("/rows?job=clicks&operator=count", method)).status == 405

    assert served(test) == []


def test_a_job_that_is_not_there_and_a_page_without_jobs_have_no_state():
    async def test(browser):
        assert (await browser.ask("/rows?job=orders&operator=count")).status == 404
        assert "can't look" in await (await browser.ask("/rows?job=clicks&operator=count")).text()

    assert served(test, sees=False) == []


@pytest.mark.parametrize(
    ("query", "look"),
    [
        ({"operator": "count", "key": "JFK"}, KeyLook("count", "JFK")),
        ({"operator": "count", "key": '["JFK", 7]'}, KeyLook("count", ("JFK", 7))),
        ({"operator": "count", "key": '"17"'}, KeyLook("count", "17")),
        ({"operator": "count", "key": "<b>"}, KeyLook("count", "<b>")),
    ],
)
def test_a_key_is_written_as_on_the_command_line(query, look):
    assert look_of("key", query) == look


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"key": "JFK"}, "operator is missing"),
        ({"operator": "count"}, "key is missing"),
        ({"operator": "count", "key": "{}"}, "can't be a key"),
    ],
)
def test_an_impossible_look_names_its_field(query, words):
    with pytest.raises(RequestError, match=words):
        look_of("key", query)


def test_answers_are_texts_of_a_bounded_length(monkeypatch):
    table = pa.table({"key": ["<script>"], "state": ["x" * 10_000]}).replace_schema_metadata({"checkpoint": "3", "created": "then"})
    monkeypatch.setattr(looks, "read_table", lambda *given: table if given[1:] == ("clicks", "count", FIRST) else None)
    answer = looked(None, "clicks", TableLook("count"))
    assert (answer["columns"], answer["checkpoint"]) == (["key: string", "state: string"], "3")
    ((key, state),) = answer["rows"]
    assert (key, len(state)) == ('"<script>"', 501)


def test_a_running_job_is_looked_at(waiting_for_jobs, tmp_path):
    def rows(partition, position):
        yield [{"key": "a"}, {"key": "a"}, {"key": "b"}][position or 0 :], 3
        while True:
            yield None

    flow = ef.Dataflow("clicks")
    stream = flow.read(ef.from_generator(rows, poll_every="10ms"))
    stream.key_by("key").aggregate(n=ef.count()).named("count").write(ef.to_callback(lambda row: None))
    config = ef.JobConfig(checkpoint=ef.CheckpointConfig(tmp_path, interval="10ms"))
    job = flow.run(runtime="local", config=config)
    while job.read("count", "b") is None:
        pass
    job.checkpoint()
    assert looked(job._runtime, "clicks", KeyLook("count", "a")) == {"value": '{"key": "a", "n": 2}'}
    assert sorted(looked(job._runtime, "clicks", TableLook("count"))["rows"]) == [['"a"', "2"], ['"b"', "1"]]
    job.cancel()
    job.wait("60s")
