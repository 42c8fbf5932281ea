"""The page of a recording: any time of it, forwards and back, as the live page would have shown it."""

from __future__ import annotations

import asyncio
import json

import pytest
from recorded_jobs import BEGIN, recorded, view_at
from serving_pages import message, with_server

from evenflow.engine.errors import SnapshotError
from evenflow.page.replay import CURSORS, FORWARD, Replay
from evenflow.page.server import serve_replay
from evenflow.recording.file import Recording, _frame
from evenflow.scheduler.protocol.reports import MigrationReport, MigrationState
from evenflow.views.history import History

VIEWS = 90


def views():
    """Return the views of a job of 90 s, where a user moves keys in second 40."""
    move = MigrationReport(
        number=0, state=MigrationState.DONE, reason="by hand", began_at=BEGIN + 40, seconds=0.5, operator="count", strategy="fluid",
        plan=None, groups=1, routed_keys=0, steps=1, steps_done=1, keys_moved=0, state_bytes=0,
    )  # fmt: skip
    return [view_at(second, migrations=(move,) if second == 41 else ()) for second in range(VIEWS)]


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    return Recording(recorded(tmp_path_factory.mktemp("replayed") / "job.rec", views()))


def live(last):
    """Return what a page that was open all the time shows after view `last`."""
    history = History("clicks")
    for view in views()[: last + 1]:
        history.add(view)
    return history.whole()


def shown(told):
    """Return the parts of a message that do not depend on when it was made."""
    return json.loads(json.dumps({name: told[name] for name in ("now", "until", "status", "graph", "loads", "seconds", "decisions")}))


@pytest.mark.parametrize("second", [0, 1, 39, 41, 60, VIEWS - 1])
def test_any_time_is_what_a_live_page_had_shown_then(recording, second):
    assert shown(Replay(recording).message(BEGIN + second)) == shown(live(second))


def test_a_page_that_goes_forward_gets_the_changes(recording):
    replay = Replay(recording)
    replay.message(BEGIN + 30)
    told = replay.message(BEGIN + 35, known=BEGIN + 30)
    assert "whole" not in told
    assert [second["t"] for second in told["seconds"]] == [int(BEGIN) + at for at in range(30, 35)]
    assert [entry["what"] for entry in replay.message(BEGIN + 45, known=BEGIN + 35)["decisions"] if entry["who"] == "person"] != []


@pytest.mark.parametrize(("at", "known"), [(20, 30), (30, 30), (30 + FORWARD + 1, 30 - 10), (31, 5)])
def test_a_page_that_jumps_gets_the_whole(recording, at, known):
    replay = Replay(recording)
    replay.message(BEGIN + 30)
    assert replay.message(BEGIN + min(at, VIEWS - 1), known=BEGIN + known)["whole"] is True


def test_pages_go_their_own_ways_and_few_histories_are_kept(recording):
    replay = Replay(recording)
    for second in range(0, 60, 5):
        replay.message(BEGIN + second)
    assert len(replay._cursors) == CURSORS
    first, second = replay.message(BEGIN + 56, known=BEGIN + 55), replay.message(BEGIN + 51, known=BEGIN + 50)
    assert "whole" not in first
    assert "whole" not in second


def test_the_server_gives_the_end_first_and_then_any_time(recording):
    async def test(browser):
        first = await message(await browser.events())
        assert (first["link"]["state"], first["jobs"], first["whole"]) == ("replay", ["clicks"], True)
        assert first["replay"] == {"begin": BEGIN, "end": BEGIN + VIEWS - 1, "at": BEGIN + VIEWS - 1, "problem": None}
        told = await (await browser.ask(f"/at?time={BEGIN + 12.4}")).json()
        assert told["replay"]["at"] == BEGIN + 12
        plans = await (await browser.ask(f"/balancers?operator=count&time={BEGIN + 12}")).json()
        assert plans["plans"][0]["before"] == pytest.approx(1.8)
        assert len((await (await browser.ask("/workers?operator=count")).json())["workers"]) == 2

    with_server(Replay(recording), test)


@pytest.mark.parametrize("path", ["/at", "/at?time=soon", "/at?time=1&known=x"])
def test_a_wrong_time_is_refused(recording, path):
    async def test(browser):
        assert (await browser.ask(path)).status == 400

    with_server(Replay(recording), test)


@pytest.mark.parametrize("path", ["/at?time=1", "/balancers"])
def test_a_recording_needs_the_token(recording, path):
    async def test(browser):
        assert (await browser.ask(path, stranger=True)).status == 401
        assert (await browser.ask(path, Sec_Fetch_Site="cross-site")).status == 403

    with_server(Replay(recording), test)


def test_nothing_in_a_recording_can_be_changed(recording):
    async def test(browser):
        assert (await browser.ask("/act", "POST", body={})).status == 403

    with_server(Replay(recording), test)


def test_a_view_that_can_not_be_read_is_reported(tmp_path):
    path = recorded(tmp_path / "odd.rec", [view_at(0)])
    with path.open("ab") as file:
        file.write(_frame(BEGIN + 1, b"odd", whole=False))
    with pytest.raises(SnapshotError):
        asyncio.run(serve_replay(path, 0, pytest.fail))

    async def test(browser):
        assert "can't be read" in (await (await browser.ask(f"/at?time={BEGIN + 1}")).json())["problem"]
        assert (await (await browser.ask(f"/at?time={BEGIN}")).json())["whole"] is True

    with_server(Replay(Recording(path)), test)


def test_a_recording_that_was_cut_says_so_on_the_page(tmp_path):
    path = recorded(tmp_path / "cut.rec", [view_at(0), view_at(1)])
    path.write_bytes(path.read_bytes()[:-5])
    told = Replay(Recording(path)).message(BEGIN + 9)
    assert "was not written to its end" in told["replay"]["problem"]
    assert told["replay"]["end"] == BEGIN
