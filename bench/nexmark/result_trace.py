"""The latencies of a query's results, whose event times are when they were due."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...engine.batch import Batch
from ...engine.sink import SinkWriter
from ..trace import TraceSink, TraceWriter


class ResultTrace(TraceSink):
    """Takes results of any columns, whose event times are when they were due."""

    def writer(self, index: int, parallelism: int) -> SinkWriter:
        return ResultTraceWriter()


class ResultTraceWriter(TraceWriter):
    """See `ResultTrace`."""

    def write(self, batch: Batch) -> None:
        assert batch.times is not None
        keys = pa.array(np.zeros(batch.num_rows, np.int32))
        super().write(Batch(pa.record_batch({"key": keys, "created": pa.array(batch.times * 1000)})))
