"""Simulated runs of a job that commits to Kafka: processes crash, sleep and wake after their successors started; requests are
lost.
"""

from __future__ import annotations

from functools import partial
from itertools import count
from random import Random

import pyarrow as pa
from simulated_broker import Broker, Crash, SimulatedCluster

from evenflow.connectors.kafka.writing.marker import CommitMarker
from evenflow.connectors.kafka.writing.producing import Committer, TopicTarget
from evenflow.engine.errors import ConnectorError

RUN = "r1"
TARGET = TopicTarget("topic", "evenflow-job/write_kafka", "murmur2", 1_000_000)
FAULTS = 12
MOST_FAILURES = 100

NESTED = 2
"""The nesting depth of other actors within each other's calls."""


class Commits:
    """A job of some checkpoints, each of some chunks of some rows, some of them empty."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.broker = Broker(self.random, self.random.randint(0, FAULTS))
        self.broker.elsewhere = self._elsewhere
        self.broker.offsets[TARGET.group(RUN)] = (0, CommitMarker(0).metadata(RUN))
        rows = count()
        self.checkpoints = [
            [[b"%d" % next(rows) for _ in range(self.random.randint(1, 5))] for _ in range(self.random.choice((0, 1, 1, 2, 3)))]
            for _ in range(self.random.randint(1, 4))
        ]
        self.done = 0
        """The number of checkpoints that a coordinator knows to be committed."""
        self.failures = 0
        self._depth = 0

    def run(self) -> None:
        """Commit all checkpoints; then let all delayed requests arrive."""
        self._coordinate(len(self.checkpoints))
        self.broker.faults, self.broker.elsewhere = 0, lambda: None
        self._commit(self._committer(), len(self.checkpoints))
        self.broker.arrive()

    def check(self) -> None:
        """Assert that every row is there once, in the order of the checkpoints, and that no transaction is open."""
        assert self.broker.topic == [row for chunks in self.checkpoints for chunk in chunks for row in chunk]
        assert not self.broker.open

    def _coordinate(self, until: int) -> None:
        """Continue from the job's knowledge as a coordinator with new processes that commit."""
        committer = self._committer()
        while self.done < until:
            checkpoint = self.done + 1
            try:
                self._commit(committer, checkpoint)
            except ConnectorError:
                self.failures += 1
                assert self.failures < MOST_FAILURES, "the job goes back again and again"
                continue
            except Crash:
                committer = self._committer()
                continue
            self.done = max(self.done, checkpoint)

    def _commit(self, committer: Committer, checkpoint: int) -> None:
        chunks = [partial(_messages, chunk) for chunk in self.checkpoints[checkpoint - 1]]
        committer.commit(RUN, checkpoint, chunks, begun=True)

    def _elsewhere(self) -> None:
        """Let another process continue while this one sleeps and is taken for lost."""
        if self._depth < NESTED and self.broker.chance(0.04, "zombie"):
            self._depth += 1
            try:
                self._coordinate(min(len(self.checkpoints), self.done + self.random.randint(1, 2)))
            finally:
                self._depth -= 1

    def _committer(self) -> Committer:
        seconds = count()
        return Committer(SimulatedCluster(self.broker), TARGET, clock=lambda: float(next(seconds)), pause=lambda _: None)


def _messages(rows: list[bytes]) -> list[pa.RecordBatch]:
    half = len(rows) // 2
    parts = [part for part in (rows[:half], rows[half:]) if part]
    return [pa.record_batch({"key": pa.nulls(len(part), pa.binary()), "value": pa.array(part, pa.binary())}) for part in parts]


def every_row_is_there_once(seed: int) -> None:
    """Run and check the job of a seed."""
    commits = Commits(seed)
    commits.run()
    commits.check()
