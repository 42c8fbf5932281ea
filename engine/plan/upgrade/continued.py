"""The operators that new workers run: the new ones, in the state in which `start` left the sources and sinks of the running job.

Neither `Source.start` nor `Sink.start` is called for an upgrade: it would list the files again, or begin another run.
"""

from __future__ import annotations

from dataclasses import replace

from ...operators.base import Operator
from ...operators.joins.lookup import Lookup
from ...operators.rows.read import Read
from ...operators.rows.write import Write
from ...operators.two_inputs import TwoInputs
from .verdicts import Verdict


def continued(old: Operator, new: Operator, verdict: Verdict) -> Operator:
    """Return the operator of new workers, from those of the running and the new plan, and the verdict about them.

    Raises ValueError for a verdict that a live upgrade doesn't carry out.
    """
    if verdict is Verdict.RESTART:
        raise ValueError("an operator that needs a restart can't be replaced while the job runs")
    if verdict is Verdict.UNCHANGED:
        return old
    if isinstance(old, Read) and isinstance(new, Read):
        return replace(new, source=new.source.continuing(old.source))
    if isinstance(old, Write) and isinstance(new, Write):
        return replace(new, sink=new.sink.continuing(old.sink))
    if isinstance(old, Lookup) and isinstance(new, Lookup) and old.sources:
        return replace(new, table=old.table)
    return replace(new, schemas=old.schemas) if isinstance(old, TwoInputs) and isinstance(new, TwoInputs) else new
