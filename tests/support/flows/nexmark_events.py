"""Small NexMark events for tests: in order, out of order, or with many equal prices and times."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import evenflow as ef

Tables = dict[str, pa.Table]


def tables(events: int, rate: float, group: int = 1) -> Tables:
    """Return the first `events`, `rate` of them in a second, with each `group` of them permuted."""
    found = {}
    for stream in ("person", "auction", "bid"):
        source = ef.nexmark(stream, events=events, event_rate=rate, out_of_order_group_size=group, rows_per_batch=events)
        found[stream] = pa.Table.from_batches([source.reader(0, 1).poll(events).rows])
    return found


def with_ties(events: Tables, step: int) -> Tables:
    """Round times to multiples of `step` milliseconds, and prices to powers of ten."""
    tied = {}
    for name, table in events.items():
        floored = pc.floor_temporal(table["dateTime"], step, unit="millisecond")
        tied[name] = table.set_column(table.schema.get_field_index("dateTime"), "dateTime", floored)
    bid = tied["bid"]
    powers = 10 ** np.log10(bid["price"].to_numpy()).astype(np.int64)
    return {**tied, "bid": bid.set_column(bid.schema.get_field_index("price"), "price", pa.array(powers))}


def write(events: Tables, folder: Path) -> Path:
    """Write events as Parquet files, as `evenflow.bench.nexmark.check` reads them."""
    for name, table in events.items():
        (folder / name).mkdir(parents=True)
        pq.write_table(table, folder / name / "events.parquet", row_group_size=4_000)
    return folder
