"""How fast a worker gives keyed state away and takes it, without the stream and the channels: keys a second, by kind of state.

A worker owns half of a million integer keys and gives half of these to another, in the chunks of a move.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from ..engine.batch import Batch
from ..engine.context import Context
from ..engine.functions.key_rows import KeyRows
from ..engine.keys.encoding import key_groups
from ..engine.keys.load import KeyLoad
from ..engine.operators.keyed import KeyedInstance, KeyedOperator
from ..engine.operators.processing.stateful_map import StatefulMap
from ..engine.operators.processing.stateful_map_columns import StatefulMapColumns
from ..engine.protocol.routing import Move
from ..engine.task.handover import CHUNK
from ..engine.types.arrays import Array
from .record import Case, Verdict

KEYS = 1_000_000
STATE_BYTES = 64
KEY_GROUPS = 1024
BATCH = 65_536
TARGETS = {"Python objects": 1.5e6, "columns": 10e6}


def operators() -> dict[str, KeyedOperator]:
    """By kind of state: 64 bytes as one object, and in eight columns."""
    columns = {f"column_{number}": np.dtype("int64") for number in range(STATE_BYTES // 8)}
    return {"Python objects": StatefulMap(("key",), _object), "columns": StatefulMapColumns(("key",), _columns, columns)}


def _object(state: bytes | None, row: dict[str, Any]) -> tuple[bytes, None]:
    return state or row["key"].to_bytes(STATE_BYTES, "little"), None


def _columns(state: dict[str, Array], rows: KeyRows) -> tuple[Mapping[str, Array], None]:
    return dict.fromkeys(state, rows.last(rows["key"])), None


def measure(repeat: int) -> list[Case]:
    """Keys a second that are given and that are taken, by kind of state."""
    cases = []
    for name, operator in operators().items():
        rates = [one_move(operator) for _ in range(repeat)]
        for place, end in enumerate(("given", "taken")):
            cases.append(Case(f"hand-over/{name}, {end}", "keys/s", "higher", tuple(rate[place] for rate in rates)))
    return cases


def one_move(operator: KeyedOperator) -> tuple[float, float]:
    """The rates at which the two workers give and take."""
    giver, taker = (operator.open(Context("hand-over", index, 2, KEY_GROUPS, KeyLoad(KEY_GROUPS))) for index in range(2))
    fill(giver)
    begun = time.perf_counter()
    transfer = giver.state.depart(Move(0, 1, groups=tuple(range(KEY_GROUPS // 4))))
    chunks = []
    while (chunk := transfer.next_chunk(CHUNK)) is not None:
        chunks.append(chunk)
    given = time.perf_counter()
    for chunk in chunks:
        taker.state.install(chunk)
    taken = time.perf_counter()
    keys = sum(chunk.num_rows for chunk in chunks)
    return keys / (given - begun), keys / (taken - given)


def _nothing(batch: Batch, port: str = "out") -> None:
    """No rows are given on."""


def fill(instance: KeyedInstance) -> None:
    """State for the keys of the lower half of the key groups."""
    for first in range(0, KEYS, BATCH):
        keys = pa.array(np.arange(first, min(first + BATCH, KEYS)))
        mine = key_groups([keys], KEY_GROUPS, "hand-over") < KEY_GROUPS // 2
        instance.process(Batch(pa.record_batch({"key": keys.filter(pa.array(mine))})), _nothing)


def verdicts(cases: list[Case]) -> list[Verdict]:
    """A kind is as fast as its slower end."""
    medians = {case.name: case.median for case in cases}
    return [
        Verdict(
            f"hand-over of {name}, keys/s a worker",
            min(medians[f"hand-over/{name}, {end}"] for end in ("given", "taken")),
            target,
            "higher",
        )
        for name, target in TARGETS.items()
    ]
