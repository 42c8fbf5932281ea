"""Settings of all tests: hypothesis gives every run the same examples, no verdict depends on how fast the machine is, and each test is part
of `make test`, `make check` or `make nightly`.

To look for new counterexamples: `pytest --hypothesis-profile=explore tests/unit`.
"""

from __future__ import annotations

import gc
import signal
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from patience import patience
from tiers import TESTS, mark_slow

pytest_plugins = ["guard"]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell without job control starts what it puts into the background so, and every process that a test starts would be deaf to Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)

CLUSTER_SECONDS = 300.0
"""The timeout of a test on Ray: starts of a dozen processes, one or two at a time, may take minutes."""

settings.register_profile(
    "repeatable",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("explore", parent=settings.get_profile("repeatable"), derandomize=False, max_examples=2_000, print_blob=True)
settings.load_profile("repeatable")


def pytest_configure(config: pytest.Config) -> None:
    """Scale the timeout of tests that hang in C code like the others; pytest reads it from its settings for each test."""
    config._inicache["faulthandler_timeout"] = patience(float(config.getini("faulthandler_timeout")))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without looking for garbage: ten thousand tests are none, and looking through them again and again takes long."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests that `make test` doesn't run, and scale the timeout of every test by the machine's patience."""
    mark_slow(items)
    for item in items:
        marked = item.get_closest_marker("timeout")
        usual = CLUSTER_SECONDS if item.path.is_relative_to(TESTS / "cluster") else float(config.getini("timeout"))
        item.add_marker(pytest.mark.timeout(patience(marked.args[0] if marked else usual)), append=False)


@pytest.fixture(scope="session", autouse=True)
def bounds_of_a_jobs_calls_grow_too() -> Iterator[None]:
    """Scale `job.wait("60s")` and the default timeouts of calls, also in programs of the documentation, which run unchanged."""
    import evenflow.job
    import evenflow.reads

    seconds = evenflow.job.seconds

    def grown(value: Any, name: str) -> float:
        return patience(seconds(value, name)) if name == "timeout" else seconds(value, name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evenflow.job, "seconds", grown)
        patch.setattr(evenflow.reads, "seconds", grown)
        yield
