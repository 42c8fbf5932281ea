"""All names that a user needs to annotate a function or to write a connector are exported from `evenflow`."""

from __future__ import annotations

import inspect
import subprocess
import sys
import typing
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import evenflow as ef

HANDED_OUT = (ef.Job, ef.Dataflow, ef.SavedJob)
"""Classes whose methods return what users look at."""


def types_in(annotation: Any) -> Iterator[type]:
    if inspect.isclass(annotation) and annotation.__module__.startswith("evenflow"):
        yield annotation
    for part in typing.get_args(annotation):
        yield from types_in(part)


def returned_types() -> dict[str, type]:
    methods = [(owner, name, method) for owner in HANDED_OUT for name, method in inspect.getmembers(owner) if not name.startswith("_")]
    functions = [(owner, name, method.fget if isinstance(method, property) else method) for owner, name, method in methods]
    return {
        f"{owner.__name__}.{name}: {found.__name__}": found
        for owner, name, function in functions
        if inspect.isfunction(function)
        for found in types_in(typing.get_type_hints(function, localns=vars(ef)).get("return"))
    }


@pytest.mark.parametrize("found", [pytest.param(found, id=name) for name, found in returned_types().items() if found.__name__ != "Plan"])
def test_types_that_methods_return_can_be_imported(found):
    assert getattr(ef, found.__name__) is found


def test_all_names_are_there_and_sorted():
    assert ef.__all__ == sorted(ef.__all__)
    assert [name for name in ef.__all__ if not hasattr(ef, name)] == []


class Countdown(ef.Source):
    """A source as a user writes it: `n`, `n - 1`, ... 1, by one worker."""

    name, parallelism = "countdown", 1

    def __init__(self, n: int) -> None:
        self.n = n

    def reader(self, index: int, parallelism: int) -> ef.SourceReader:
        return CountdownReader(self.n)


class CountdownReader(ef.SourceReader):
    def __init__(self, n: int) -> None:
        self.left = n

    def poll(self, max_rows: int) -> ef.Batch | None:
        numbers = list(range(self.left, max(self.left - max_rows, 0), -1))
        self.left -= len(numbers)
        return ef.Batch(pa.record_batch({"n": numbers}))

    @property
    def finished(self) -> bool:
        return self.left == 0

    def position(self) -> int:
        return self.left

    def seek(self, position: int) -> None:
        self.left = position


class Totals(ef.Sink):
    """A sink as a user writes it: each checkpoint's sum."""

    name = "totals"

    def __init__(self) -> None:
        self.sums: list[int] = []

    def writer(self, index: int, parallelism: int) -> ef.SinkWriter:
        return TotalsWriter()

    def commit(self, checkpoint: int, committables: Any) -> list[Any]:
        return list(committables)

    def deliver(self, payload: int) -> None:
        self.sums.append(payload)


class TotalsWriter(ef.SinkWriter):
    def __init__(self) -> None:
        self.sum = 0

    def write(self, batch: ef.Batch) -> None:
        self.sum += sum(batch.rows["n"].to_pylist())

    def prepare(self, checkpoint: int) -> list[Any]:
        prepared, self.sum = self.sum, 0
        return [prepared] if prepared else []


@pytest.mark.usefixtures("waiting_for_jobs")
def test_a_source_and_a_sink_of_ones_own_run_with_what_evenflow_exports():
    flow, totals = ef.Dataflow("own-connectors"), Totals()
    flow.read(Countdown(1_000)).filter(lambda row: row["n"] % 2 == 0).write(totals)
    flow.run(runtime="local").wait()
    assert sum(totals.sums) == sum(range(0, 1_001, 2))


@pytest.mark.slow
@pytest.mark.parametrize(("module", "found"), [("evenflow.engine.batch", True), ("evenflow.absent", False)])
def test_a_users_mypy_finds_the_installed_package(tmp_path, module, found):
    (tmp_path / "program.py").write_text(f"import {module}\n")
    # What a user's mypy reads behind the import, `make types` checks.
    command = [sys.executable, "-m", "mypy", "--follow-imports=skip", "--cache-dir", str(tmp_path / "cache"), "program.py"]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (finished.returncode == 0) is found, finished.stdout + finished.stderr
    assert ("import-not-found" in finished.stdout) is not found
