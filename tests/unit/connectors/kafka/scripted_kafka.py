"""A cluster without I/O in which a seed decides the order of events: records of partitions, ends, temporary errors.

It has the parts of a client that the reader uses: `Consumer`, and the watch. Other tests use real brokers; this one allows
thousands of runs.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from evenflow.connectors.kafka.cluster import KafkaCluster, Problems
from evenflow.connectors.kafka.reading.read_plan import Extent, ReadPlan
from evenflow.connectors.kafka.reading.reader import KafkaReader
from evenflow.connectors.kafka.reading.topics import Topics
from evenflow.connectors.kafka.reading.watch import Look
from evenflow.connectors.kafka.values.decoding import JsonValues
from evenflow.connectors.kafka.values.record_columns import RecordColumns
from evenflow.connectors.quiet import Clocks
from evenflow.engine.time.event_time import EventTime


@dataclass
class Error:
    called: str
    text: str = ""

    def name(self) -> str:
        return self.called

    def fatal(self) -> bool:
        return False

    def retriable(self) -> bool:
        return self.called == "NOT_LEADER_FOR_PARTITION"

    def str(self) -> str:
        return self.text or self.called


PASSING = (
    Error("_TRANSPORT"),
    Error("_ALL_BROKERS_DOWN"),
    Error("_TIMED_OUT"),
    Error("NOT_LEADER_FOR_PARTITION"),
    Error("GROUP_AUTHORIZATION_FAILED"),
    Error("_BAD_MSG", "FindCoordinator response error: Local: Bad message format"),
)


@dataclass
class Message:
    place: tuple[str, int]
    at: int
    content: bytes | None = None
    problem: Error | None = None

    def topic(self) -> str:
        return self.place[0]

    def partition(self) -> int:
        return self.place[1]

    def offset(self) -> int:
        return self.at

    def value(self) -> bytes | None:
        return self.content

    def key(self) -> bytes | None:
        return None

    def timestamp(self) -> tuple[int, int]:
        return 1, 0

    def error(self) -> Error | None:
        return self.problem

    def __len__(self) -> int:
        return len(self.content or b"")


@dataclass
class Log:
    """A partition: its records by offset, with gaps for markers; readable from `first` to before `stable`, written up to `end`."""

    records: dict[int, bytes] = field(default_factory=dict)
    first: int = 0
    end: int = 0
    stable: int = 0

    def append(self, value: bytes) -> None:
        self.records[self.end] = value
        self.end += 1

    def commit(self, *, marker: bool) -> None:
        self.end += marker
        self.stable = self.end


class ScriptedCluster:
    """A scripted cluster. `now` is the time in seconds, which the test sets."""

    def __init__(self, seed: int, topics: Sequence[str]) -> None:
        self.random = random.Random(seed)
        self.topics = Topics(tuple(topics))
        self.logs: dict[tuple[str, int], Log] = {}
        self.now = 1_000.0

    def plan(self, **more: Any) -> ReadPlan:
        """Return the plan to read all present partitions from their beginnings, endlessly."""
        extents = {self.topics.ordinal(*place): Extent(log.first, log.first, None) for place, log in self.logs.items()}
        settled: dict[str, Any] = {
            "cluster": KafkaCluster("scripted:1", operator="clicks"),
            "topics": self.topics,
            "ids": ("",) * len(self.topics.names),
            "extents": extents,
            "endless": True,
            "decoder": JsonValues(pa.schema({"n": pa.int64(), "ts": pa.int64()})),
            "columns": RecordColumns(("topic", "partition", "offset"), "clicks"),
            "event_time": EventTime("ts", unit="us", max_delay=5),
            "by_timestamp": False,
            "idle_after": None,
            "on_error": "stop",
            "on_lost_offsets": "stop",
            "group_id": None,
            "discover_every": 30.0,
        }
        return ReadPlan(**{**settled, **more})

    def reader(self, plan: ReadPlan, index: int, parallelism: int) -> KafkaReader:
        watch = ScriptedWatch(self, plan, index, parallelism)
        consumer: Any = ScriptedConsumer(self)
        return KafkaReader(plan, index, parallelism, consumer, watch, Problems(), Clocks(lambda: self.now, lambda: self.now))

    def value(self, number: int, time: int) -> bytes:
        return json.dumps({"n": number, "ts": time}).encode()


class ScriptedConsumer:
    def __init__(self, cluster: ScriptedCluster) -> None:
        self._cluster = cluster
        self._next: dict[tuple[str, int], int] = {}
        self._told_end: dict[tuple[str, int], int] = {}
        self._paused: set[tuple[str, int]] = set()

    def incremental_assign(self, places: Sequence[Any]) -> None:
        for place in places:
            assert (place.topic, place.partition) not in self._next, "assigned twice"
            self._next[place.topic, place.partition] = place.offset

    def incremental_unassign(self, places: Sequence[Any]) -> None:
        for place in places:
            del self._next[place.topic, place.partition]

    def pause(self, places: Sequence[Any]) -> None:
        self._paused |= {(place.topic, place.partition) for place in places}

    def resume(self, places: Sequence[Any]) -> None:
        self._paused -= {(place.topic, place.partition) for place in places}

    def consume(self, count: int, timeout: float) -> list[Message]:
        assert timeout == 0.0
        choose, found = self._cluster.random, list[Message]()
        for place in choose.sample(sorted(self._next), len(self._next)):
            if place in self._paused or choose.random() < 0.3:
                continue
            if choose.random() < 0.1:
                found.append(Message(place, -1, b"passes", choose.choice(PASSING)))
            found += self._from(place, min(count - len(found), choose.randint(0, 5)))
        return found

    def get_watermark_offsets(self, place: Any, timeout: float) -> tuple[int, int]:
        log = self._cluster.logs[place.topic, place.partition]
        return log.first, log.end

    def close(self) -> None:
        """Do nothing."""

    def _from(self, place: tuple[str, int], count: int) -> list[Message]:
        log, at = self._cluster.logs[place], self._next[place]
        if self._cluster.random.random() < 0.05 and at <= log.end:
            at = max(log.first, at - 3)  # repeats records after a lost connection
        if at < log.first or at > log.end:
            return [Message(place, at, b"out of range", Error("_AUTO_OFFSET_RESET"))]
        offsets = [offset for offset in sorted(log.records) if at <= offset < log.stable][: max(count, 0)]
        found = [Message(place, offset, log.records[offset]) for offset in offsets]
        if offsets:
            self._next[place] = max(self._next[place], offsets[-1] + 1) if self._cluster.random.random() < 0.5 else offsets[-1] + 1
        if (
            not any(offset >= self._next[place] for offset in log.records if offset < log.stable)
            and self._told_end.get(place) != log.stable
        ):
            self._next[place] = max(self._next[place], log.stable)
            self._told_end[place] = log.stable
            found.append(Message(place, log.stable, b"end", Error("_PARTITION_EOF")))
        return found


class ScriptedWatch:
    """A watch that answers at some later time with the state at the request, or not at all."""

    def __init__(self, cluster: ScriptedCluster, plan: ReadPlan, index: int, parallelism: int) -> None:
        self._cluster, self._topics, self._index, self._parallelism = cluster, plan.topics, index, parallelism
        self._endless = plan.endless
        self._look: Look | None = None

    def ask(self, read: Mapping[int, int]) -> None:
        logs = {self._topics.ordinal(*place): log for place, log in self._cluster.logs.items()}
        self._look = Look(self._cluster.now)
        if self._cluster.random.random() < 0.8:
            new = (o for o in logs if o not in read and Topics.belongs_to(o, self._index, self._parallelism) and self._endless)
            ends, found = {o: logs[o].stable for o in read}, {o: logs[o].first for o in new}
            self._look = Look(self._cluster.now, ends, found if self._cluster.random.random() < 0.5 else {})

    def answer(self) -> Look | None:
        if self._look is None or self._cluster.random.random() < 0.5:
            return None
        answer, self._look = self._look, None
        return answer

    def close(self) -> None:
        """Do nothing."""
