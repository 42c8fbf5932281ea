"""Sources and sinks of Bytewax dataflows, from functions that make a partition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition


class Parts(FixedPartitionedSource[Any, Any]):
    """A source of `count` partitions; `build` gets the index of one, and the position to resume at."""

    def __init__(self, count: int, build: Callable[[int, Any], StatefulSourcePartition[Any, Any]]) -> None:
        self._count, self._build = count, build

    def list_parts(self) -> list[str]:
        return [str(index) for index in range(self._count)]

    def build_part(self, step_id: str, for_part: str, resume_state: Any) -> StatefulSourcePartition[Any, Any]:
        return self._build(int(for_part), resume_state)


class EachWorker(DynamicSink[Any]):
    """A sink with a partition per worker; `build` gets the worker's index."""

    def __init__(self, build: Callable[[int], StatelessSinkPartition[Any]]) -> None:
        self._build = build

    def build(self, step_id: str, worker_index: int, worker_count: int) -> StatelessSinkPartition[Any]:
        return self._build(worker_index)
