"""What goes through the pipes between the page's server and the process that follows jobs."""

from __future__ import annotations

import asyncio
import gc
from io import BytesIO

import pytest

from evenflow.engine.errors import RequestError
from evenflow.scheduler.protocol.requests import Stop
from evenflow.ui.actions import Sample
from evenflow.ui.feed import Feed
from evenflow.ui.follower import Follower
from evenflow.ui.frames import packed, read
from evenflow.ui.heard import Answered, Asked


def test_messages_come_as_they_went_and_the_end_is_none():
    pipe = BytesIO(packed(("a", 1)) + packed(Asked(3, "clicks", Stop())))
    assert [read(pipe) for _ in range(3)] == [("a", 1), Asked(3, "clicks", Stop()), None]


@pytest.mark.parametrize("kept", [1, 4, 10])
def test_a_message_that_was_cut_is_none(kept):
    assert read(BytesIO(packed("a long message")[:kept])) is None


def test_a_job_that_is_not_followed_does_nothing_and_that_is_said():
    pipe = BytesIO()
    Follower(pipe, None)._act(Asked(3, "clicks", Stop()))
    answer = read(BytesIO(pipe.getvalue()))
    assert answer == Answered(3, problem="the job `clicks` is not followed just now")


def test_one_worker_is_looked_at_at_a_time():
    pipe = BytesIO()
    follower = Follower(pipe, None)
    follower._runtimes["clicks"] = None
    with follower._sampling:
        follower._act(Asked(3, "clicks", Sample("count-0")))
    assert read(BytesIO(pipe.getvalue())).problem == "a worker is being looked at already: wait until that is done"


def test_without_a_follower_an_action_is_refused():
    with pytest.raises(RequestError, match="can't be reached"):
        asyncio.run(Feed(lambda _: None, None).act("clicks", Stop()))


@pytest.mark.parametrize(("answer", "problem"), [(Answered(0, {"done": "begun"}), None), (Answered(0, problem="it is busy"), "it is busy")])
def test_an_answer_goes_to_who_asked(answer, problem):
    feed = Feed(lambda _: None, None)

    async def ask():
        waiting = feed._asked[0] = asyncio.get_running_loop().create_future()
        feed._take(Answered(7, {"done": "somebody else's, who has gone"}))
        feed._take(answer)
        return await waiting

    if problem is None:
        assert asyncio.run(ask()) == {"done": "begun"}
    else:
        with pytest.raises(RequestError, match=problem):
            asyncio.run(ask())


def test_a_page_that_ends_leaves_nothing_that_waits_for_the_follower(monkeypatch):
    """The follower ends with it; what still waited would fail then, where nobody looks, and Python would print that."""
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
