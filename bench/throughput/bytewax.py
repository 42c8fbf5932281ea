"""T2 in Bytewax in two processes.

Decoding the files is not measured: the source gives batches of ready rows. Each worker's partition holds half of the keys, so that a key's
rows come in the files' order. The time runs from the last worker's first batch to the last worker's end.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from ..baselines.bytewax import PROCESSES, run_cluster
from ..harness.task import Answer, Task
from .results import result_of_alerts


def run(task: Task) -> Iterator[Answer]:
    """Run a cluster for each iteration. Raises RuntimeError if a worker did not note its start."""
    for _ in range(task.repeat):
        clocks = Path(task.output + "-clocks")
        for folder in (Path(task.output), clocks):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        run_cluster(f"{__package__}.bytewax_flow:flow", {"EVENFLOW_BENCH_TASK": task.to_json(), "EVENFLOW_BENCH_CLOCKS": str(clocks)})
        begun, ended = ([float(path.read_text()) for path in clocks.glob(f"{what}-*")] for what in ("begin", "end"))
        if len(begun) != PROCESSES or not ended:
            raise RuntimeError(f"Bytewax's workers noted {len(begun)} starts and {len(ended)} ends in {clocks}, not {PROCESSES} of each")
        yield Answer(max(ended) - max(begun), task.rows, result_of_alerts(task.output))
