"""Measures a join that keeps all rows of left: rows per second in and probed, and the memory of the process, by state backend.

    python -m evenflow.bench.join_rows --rows 10000000 --state lmdb

Left's rows are two int64 columns and a text of 20 bytes; each row of right has the key of one of them. The operator is driven by hand, in
one process, so only the join is measured.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..engine.batch import Batch
from ..engine.context import Context
from ..engine.joins.sides import LEFT, RIGHT
from ..engine.joins.within import Always
from ..engine.keys.load import KeyLoad
from ..engine.operators.joins.join import Join, JoinInstance
from ..state.backends.settings import StateSettings

BATCH = 65_536
GROUPS = 128


def main() -> None:
    """Run it, and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--probes", type=int, default=1_000_000)
    parser.add_argument("--state", default="lmdb", help='"memory", "lmdb", or the address of a server')
    parser.add_argument("--dir", default=None, help="the folder of LMDB's files")
    given = parser.parse_args()
    print(json.dumps(measured(given.rows, given.probes, StateSettings(given.state, given.dir, "join-rows"))))


def measured(rows: int, probes: int, state: StateSettings) -> dict[str, Any]:
    """What a run took; memory in bytes without that of the process before it."""
    operator = Join(("k",), ("id",), Always(), "inner", "_right")
    join = JoinInstance(operator, Context("join", 0, 1, GROUPS, KeyLoad(GROUPS), state))
    before, begun, out = memory(), time.perf_counter(), 0

    def count(batch: Batch, port: str = "out") -> None:  # noqa: ARG001 -- as `Emit`
        nonlocal out
        out += batch.num_rows

    spent = 0.0
    for first in range(0, rows, BATCH):
        numbers = np.arange(first, min(first + BATCH, rows))
        text = pc.binary_join_element_wise(pa.scalar("customer-"), pc.utf8_lpad(pc.cast(pa.array(numbers), pa.string()), 11, "0"), "")
        batch = LEFT.tag(Batch(pa.record_batch({"k": numbers, "n": numbers * 7, "text": text}), numbers), ("k",))
        begun = time.perf_counter()
        join.process(batch, count)
        spent += time.perf_counter() - begun
    kept, reported = memory(), join.state.nbytes
    random, probed = np.random.default_rng(1), 0.0
    for first in range(0, probes, BATCH):
        ids = random.integers(0, rows, min(BATCH, probes - first))
        batch = RIGHT.tag(Batch(pa.record_batch({"id": ids}), np.full(len(ids), rows)), ("id",))
        begun = time.perf_counter()
        join.process(batch, count)
        probed += time.perf_counter() - begun
    assert out == probes, f"{out} pairs of {probes} probing rows"
    join.close()
    return {
        "state": state.backend, "rows": rows, "rows_in_per_second": round(rows / spent), "probed_per_second": round(probes / probed),
        "resident_bytes": kept["RssAnon"] - before["RssAnon"], "mapped_file_bytes": kept["RssFile"] - before["RssFile"],
        "reported_bytes": reported,
    }  # fmt: skip


def memory() -> dict[str, int]:
    """The resident bytes of this process: its own, and pages of mapped files, which the system takes back when it needs them."""
    lines = (line.split() for line in Path("/proc/self/status").read_text().splitlines())
    return {words[0][:-1]: int(words[1]) * 1024 for words in lines if words[0] in ("RssAnon:", "RssFile:")}


if __name__ == "__main__":
    main()
