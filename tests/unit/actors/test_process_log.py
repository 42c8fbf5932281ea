"""A job sets the level at which its processes log, and leaves logging as it found it."""

from __future__ import annotations

import logging

import pytest

from evenflow.actors import process_log
from evenflow.actors.process_log import set_log_level


@pytest.fixture
def root(monkeypatch):
    """Return a root logger without handlers in place of this process's, whose handlers are pytest's."""
    logger = logging.RootLogger(logging.WARNING)
    monkeypatch.setattr(process_log, "root_logger", lambda: logger)
    yield logger
    set_log_level(None)


def test_messages_of_the_level_are_written_to_stderr_with_their_logger(root, capsys):
    set_log_level("debug")
    root.debug("here")
    assert capsys.readouterr().err.endswith("DEBUG root: here\n")
    set_log_level("info")
    root.debug("not here")
    root.info("here too")
    assert capsys.readouterr().err.endswith("INFO root: here too\n")
    assert len(root.handlers) == 1


def test_without_a_level_logging_is_as_before(root, capsys):
    set_log_level("debug")
    set_log_level("error")
    set_log_level(None)
    assert (root.level, root.handlers) == (logging.WARNING, [])
    set_log_level(None)
    root.info("not here")
    assert capsys.readouterr().err == ""


def test_handlers_that_are_there_stay_the_only_ones(root):
    own = logging.NullHandler()
    root.addHandler(own)
    set_log_level("info")
    assert (root.level, root.handlers) == (logging.INFO, [own])
    set_log_level(None)
    assert (root.level, root.handlers) == (logging.WARNING, [own])
