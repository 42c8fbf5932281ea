"""A slow start prints what it waits for, once for each thing."""

from __future__ import annotations

import logging
import sys
import threading

from patience import patience

from evenflow.actors.driver.start_watch import StartWatch


def watched(answers):
    """Watch a start that waits for each of these in turn."""
    left, done = list(answers), threading.Event()

    def waits_for():
        if len(left) == 1:
            done.set()
            return left[0]
        return left.pop(0)

    with StartWatch("words", waits_for, every=0.001):
        assert done.wait(patience(60))
        done.clear()
        assert done.wait(patience(60)), "what it said last has been looked at again"


def test_each_change_is_a_line_of_the_log(caplog, capsys):
    with caplog.at_level(logging.INFO, logger="evenflow"):
        watched(["the process of its coordinator", "the processes of count-0", "the processes of count-0", "its sinks"])
    waited = ["the process of its coordinator", "the processes of count-0", "its sinks"]
    assert caplog.messages == [f"job `words` waits for {what}" for what in waited]
    assert capsys.readouterr() == ("", "")


def test_a_terminal_shows_it(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    watched(["its sinks"])
    assert capsys.readouterr() == ("", "job `words` waits for its sinks\n")


def test_a_start_that_is_over_says_nothing_more(monkeypatch, caplog):
    over = threading.Event()
    with caplog.at_level(logging.INFO, logger="evenflow"), StartWatch("words", lambda: str(over.wait(patience(60))), every=0.001) as watch:
        monkeypatch.setattr(watch, "_over", over)
        over.set()
    assert not caplog.messages
