"""Records that can't be decoded: they stop the job, or are counted and become dead letters if the user asked for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ....engine.batch import Batch
from ....engine.errors import RecordError
from ....engine.functions.error_policy import DEAD_LETTER, dead_letter
from .read_plan import ReadPlan

if TYPE_CHECKING:
    from confluent_kafka import Message


class DeadLetters:
    """The undecodable records of one reader. `count`: how many did not stop the job."""

    def __init__(self, plan: ReadPlan) -> None:
        self._plan = plan
        self._letters: list[dict[str, str | None]] = []
        self._times: list[int] = []
        self.count = 0

    def add(self, record: Message, problem: str) -> None:
        """Add a record. Raises RecordError, which names topic, partition and offset, if it must stop the job."""
        found: dict[str, Any] = {
            "topic": record.topic(),
            "partition": record.partition(),
            "offset": record.offset(),
            "key": record.key(),
            "value": record.value(),
        }
        at = f"partition {found['partition']} of topic `{found['topic']}`, offset {found['offset']}"
        error = RecordError(
            self._plan.operator,
            f'a record can\'t be decoded: {problem} ({at}); correct schema= or format=, or say on_error="skip" to drop such records',
            record=found,
        )
        if self._plan.on_error == "stop":
            raise error
        self.count += 1
        if self._plan.on_error == "dead_letter":
            self._letters.append(dead_letter(self._plan.operator, None, found, error))
            self._times.append(max(0, record.timestamp()[1]) * 1_000)

    def take(self) -> Batch | None:
        """Return the dead letters since the last call. Their event time is the record's timestamp."""
        if not self._letters:
            return None
        rows = pa.RecordBatch.from_pylist(self._letters, schema=DEAD_LETTER)
        times = None if self._plan.event_time is None else np.array(self._times, np.int64)
        self._letters, self._times = [], []
        return Batch(rows, times)
