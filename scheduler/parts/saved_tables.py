"""The state of an operator in the newest complete checkpoint, for callers that read its files. No worker is asked, and nothing waits.

Invariant: the entries are those of one checkpoint, so they are a consistent cut through the whole job.
"""

from __future__ import annotations

from ...engine.errors import JobNotRunningError, RequestError
from ...engine.operators.keyed import KeyedOperator
from ...engine.state_description import parts_change
from ..protocol.saved_table import SavedTable
from ..record.job_record import JobRecord
from .key_reads import readable_stage


def saved_table(job: JobRecord, operator: str) -> SavedTable | None:
    """Return the place of the operator's state in the newest complete checkpoint, None if there is none yet of this version of the code.

    Raises RequestError for an operator whose keys can't be read, one whose input has ended, and a job that doesn't save its state;
    JobNotRunningError if the job has ended.
    """
    if job.state.final:
        raise JobNotRunningError(f"job `{job.name}` is {job.state}: ef.read_savepoint reads the checkpoints that it has left")
    stage, url, manifest = readable_stage(job, operator), job.config.checkpoint.url(job.name), job.checkpoints.in_folder
    if url is None:
        raise RequestError(
            f"job `{job.name}` doesn't save its state, and a table is read from a checkpoint: give the job CheckpointConfig(dir=...); "
            "job.read reads single keys without it"
        )
    if manifest is None or stage.name not in manifest.tasks:
        return None
    entries = manifest.tasks[stage.name]
    if any(entry.finished for entry in entries):
        raise RequestError(f"operator `{operator}` has processed the end of its input, so that it keeps no state any more")
    head = stage.chain[0].operator
    assert isinstance(head, KeyedOperator)
    then, now = manifest.state[stage.name], job.plan.state[stage.name]
    if then.version.number != now.version.number:
        return None  # this run has not completed a checkpoint since the code was changed
    change = parts_change(then, now)
    return SavedTable(operator, url, manifest.checkpoint, manifest.created, entries, head.reader(), change)
