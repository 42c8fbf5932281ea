"""Wrong programs: written, run in this process if they can be, and their one error kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

import evenflow as ef

PATIENCE = "60s"
ROWS = [{"k": "a", "v": 1, "t": 0}, {"k": "b", "v": 2, "t": 1000}]


@pytest.fixture
def ended(waiting_for_jobs):
    """`ended(build)`: the error of a job whose rows go through `build(stream)`. Its handle asks for news: it is it that sleeps."""

    def end(build: Callable[[ef.Stream], ef.Stream], rows: Iterable[Any] = ROWS, config: ef.JobConfig | None = None, **options: Any) -> Any:
        def program() -> None:
            flow = ef.Dataflow("wrong")
            build(flow.read(ef.from_items(list(rows), **options))).write(ef.to_list([]))
            flow.run(runtime="local", config=config).wait(PATIENCE)

        with pytest.raises(ef.EvenflowError) as caught:
            program()
        return caught.value

    return end


@pytest.fixture
def refused(waiting_for_jobs):
    """`refused(program)`: the error of a program that reads what it likes."""

    def refuse(program: Callable[[], Any]) -> Any:
        with pytest.raises(ef.EvenflowError) as caught:
            program()
        return caught.value

    return refuse
