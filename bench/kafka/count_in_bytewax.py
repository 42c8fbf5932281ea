"""A running count of a topic's records per key in Bytewax, two processes of one worker each; each partition belongs to one of them.

The time runs from the first record that a worker takes to the last worker's end. The processor time is that of both processes meanwhile.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from ..baselines.bytewax import PROCESSES, run_cluster
from ..harness.task import Answer, Task
from .records import result_of


def run(task: Task) -> Iterator[Answer]:
    """Run a cluster for each iteration. `options`: `bootstrap` and `topic`. Raises RuntimeError if a process noted no counts."""
    for _ in range(task.repeat):
        notes = Path(task.output)
        shutil.rmtree(notes, ignore_errors=True)
        notes.mkdir(parents=True)
        run_cluster(f"{__package__}.bytewax_flow:flow", {"EVENFLOW_BENCH_TASK": task.to_json()})
        found = [json.loads(path.read_text()) for path in notes.glob("*.json")]
        if len(found) != PROCESSES:
            raise RuntimeError(f"{len(found)} of {PROCESSES} processes have noted their counts in {notes}")
        counts = {int(key): count for each in found for key, count in each["counts"].items()}
        seconds = max(each["ended"] for each in found) - min(each["begun"] for each in found)
        yield Answer(seconds, task.rows, result_of(counts), {"cpu_seconds": sum(each["cpu_seconds"] for each in found)})
