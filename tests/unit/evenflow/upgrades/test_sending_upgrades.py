"""The request for an upgrade is sent once, whatever its answer is, with the modules of the program if they can be pickled."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import pytest
from ray import cloudpickle

from evenflow import upgrades


@dataclass
class Wanted:
    """A request with something of the user's in it."""

    content: object = None


class Job:
    """A job that notes which requests it gets, and whether modules travel with them; it raises `error`."""

    def __init__(self, error=None):
        self.error, self.asked = error, []

    def ask(self, request):
        self.asked.append(__name__ in cloudpickle.list_registry_pickle_by_value())
        if self.error is not None:
            raise self.error
        return 7


def test_a_request_goes_out_with_the_modules_of_the_program():
    job = Job()
    assert upgrades._sent(job, Wanted()) == 7
    assert job.asked == [True]


def test_modules_stay_at_home_if_something_in_them_can_not_be_pickled():
    job = Job()
    upgrades._sent(job, Wanted(threading.Lock()))
    assert job.asked == [False]


@pytest.mark.parametrize("content", [None, threading.Lock()])
def test_an_answer_that_is_an_error_of_types_is_not_asked_for_again(content):
    job = Job(TypeError("from the coordinator"))
    with pytest.raises(TypeError, match="from the coordinator"):
        upgrades._sent(job, Wanted(content))
    assert len(job.asked) == 1
