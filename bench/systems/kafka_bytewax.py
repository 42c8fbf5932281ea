"""A running count of a topic's records per key in Bytewax, two processes of one worker each; each partition belongs to one of them.

The time is from the first record that a worker takes to the last worker's end, the processor time that of both processes meanwhile.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from ..kafka.records import result_of
from ..task import Answer, Task
from .bytewax import PROCESSES, run_cluster


def run(task: Task) -> Iterator[Answer]:
    """`options`: `bootstrap` and `topic`."""
    for _ in range(task.repeat):
        notes = Path(task.output)
        shutil.rmtree(notes, ignore_errors=True)
        notes.mkdir(parents=True)
        run_cluster(f"{__package__}.kafka_bytewax_flow:flow", {"EVENFLOW_BENCH_TASK": task.to_json()})
        yield answer_of(notes, task.rows, PROCESSES)


def answer_of(notes: Path, rows: int, processes: int) -> Answer:
    """The answer of processes that have noted what they did."""
    found = [json.loads(path.read_text()) for path in notes.glob("*.json")]
    if len(found) != processes:
        raise RuntimeError(f"{len(found)} of {processes} processes have noted in {notes} what they counted")
    counts = {int(key): count for each in found for key, count in each["counts"].items()}
    seconds = max(each["ended"] for each in found) - min(each["begun"] for each in found)
    return Answer(seconds, rows, result_of(counts), {"cpu_seconds": sum(each["cpu_seconds"] for each in found)})
