"""What goes through the pipes between the page's server and the process that follows jobs."""

from __future__ import annotations

import asyncio
from io import BytesIO

import pytest

from evenflow.engine.errors import RequestError
from evenflow.scheduler.job.requests import Stop
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


def test_without_a_follower_an_action_is_refused():
    with pytest.raises(RequestError, match="can't be reached"):
        asyncio.run(Feed(lambda _: None, None).act("clicks", Stop()))


@pytest.mark.parametrize(("answer", "problem"), [(Answered(0, done="begun"), None), (Answered(0, problem="it is busy"), "it is busy")])
def test_an_answer_goes_to_who_asked(answer, problem):
    feed = Feed(lambda _: None, None)

    async def ask():
        waiting = feed._asked[0] = asyncio.get_running_loop().create_future()
        feed._take(Answered(7, done="somebody else's, who has gone"))
        feed._take(answer)
        return await waiting

    if problem is None:
        assert asyncio.run(ask()) == "begun"
    else:
        with pytest.raises(RequestError, match=problem):
            asyncio.run(ask())
