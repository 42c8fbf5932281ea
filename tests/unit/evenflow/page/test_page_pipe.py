"""The pipes between the page's server and the process that follows jobs."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os

import pytest

from evenflow.connectors.pipes import framed, read_message, write_message
from evenflow.engine.errors import RequestError
from evenflow.page.actions import Sample
from evenflow.page.feed import Feed
from evenflow.page.follower import Follower
from evenflow.page.messages import ActionDone, ActionWanted, Quiet, packed, unpacked
from evenflow.scheduler.protocol.requests import Stop


@pytest.fixture
def pipe():
    """Open a pipe, and return its two ends, to read and to write."""
    ends = os.pipe()
    yield ends
    for end in ends:
        with contextlib.suppress(OSError):  # a test has closed it
            os.close(end)


def test_messages_arrive_as_they_were_sent_and_the_end_is_none(pipe):
    write_message(pipe[1], packed(Quiet()))
    write_message(pipe[1], packed(ActionWanted(3, "clicks", Stop())))
    os.close(pipe[1])
    assert [unpacked(read_message(pipe[0])) for _ in range(2)] == [Quiet(), ActionWanted(3, "clicks", Stop())]
    assert read_message(pipe[0]) is None


@pytest.mark.parametrize("kept", [1, 4, 10])
def test_a_message_that_was_cut_is_none(kept, pipe):
    os.write(pipe[1], framed(b"a long message")[:kept])
    os.close(pipe[1])
    assert read_message(pipe[0]) is None


def test_an_action_on_a_job_that_is_not_followed_is_refused(pipe):
    Follower(pipe[1], None)._act(ActionWanted(3, "clicks", Stop()))
    assert unpacked(read_message(pipe[0])) == ActionDone(3, problem="the job `clicks` is not followed just now")


def test_one_worker_is_sampled_at_a_time(pipe):
    follower = Follower(pipe[1], None)
    follower._runtimes["clicks"] = None
    with follower._sampling:
        follower._act(ActionWanted(3, "clicks", Sample("count-0")))
    assert unpacked(read_message(pipe[0])).problem == "another worker is being sampled: wait until that is done"


def test_without_a_follower_an_action_is_refused():
    with pytest.raises(RequestError, match="can't be reached"):
        asyncio.run(Feed(lambda _: None, None).act("clicks", Stop()))


@pytest.mark.parametrize(
    ("answer", "problem"), [(ActionDone(0, {"done": "begun"}), None), (ActionDone(0, problem="it is busy"), "it is busy")]
)
def test_an_answer_goes_to_the_request_of_its_number(answer, problem):
    feed = Feed(lambda _: None, None)

    async def ask():
        waiting = feed._pending[0] = asyncio.get_running_loop().create_future()
        feed._take(ActionDone(7, {"done": "for a page that is closed"}))
        feed._take(answer)
        return await waiting

    if problem is None:
        assert asyncio.run(ask()) == {"done": "begun"}
    else:
        with pytest.raises(RequestError, match=problem):
            asyncio.run(ask())


def test_a_page_that_ends_leaves_nothing_that_waits_for_the_follower(monkeypatch):
    """The follower ends with it; a future that still waited would fail then, and Python would print that."""
    problems = []

    async def follower(feed):
        return await asyncio.create_subprocess_exec("cat", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)

    monkeypatch.setattr(Feed, "_start", follower)

    async def end_while_it_listens():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context["message"]))
        feed = Feed(lambda _: None, None)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(feed.run(), 0.2)
        gc.collect()

    asyncio.run(end_while_it_listens())
    assert problems == []
