"""A topology as a flow, with lists of the lines of its sources and of the rows at its sinks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import evenflow as ef

from .check import differences
from .load import Load, stamped
from .rows import Row
from .topologies import TOPOLOGIES

IDS = 200
"""The ids by which Network counts."""


@dataclass(frozen=True, slots=True)
class TopologyFlow:
    """The `lines` of each source, and the `rows` at each sink, with the text and the time (ns) at which the row was done.

    Both grow with each checkpoint of the job.
    """

    topology: str
    flow: ef.Dataflow
    lines: Sequence[list[Row]]
    rows: dict[str, list[Row]] = field(default_factory=dict)

    @classmethod
    def of(cls, topology: str, *, load: Load, total: int | None = None) -> TopologyFlow:
        """Return the flow of a topology. Each of its sources ends after `total` lines, or emits the topology's rate until it is stopped.

        At `load.pace` 2 the operators wait twice as long, and half as many lines are offered.
        """
        chosen = TOPOLOGIES[topology]
        found = cls(topology, ef.Dataflow(topology.replace("_", "-")), [[] for _ in range(chosen.sources)])
        streams = []
        for index, given in enumerate(found.lines):
            name = f"lines-{index}"
            rate = chosen.rate / load.pace if total is None else None
            source = ef.generate(rate=rate, every="50ms", total=total, keys=IDS, seed=index, name=name)
            streams.append(found.flow.read(source).parallelism(1, fixed=True).write(ef.to_list(given, name=f"{name}-given")))
        for name, stream in chosen.build(streams, load).items():
            found.rows[name] = []
            stream.map(stamped).named(f"{name}-done").parallelism(1).write(ef.to_list(found.rows[name], name=f"{name}-out"))
        return found

    def differences(self) -> dict[str, tuple[int, int, int]]:
        """Return for each sink the number of rows, of missing rows and of wrong rows."""
        return differences(self.topology, self.lines, {sink: [row["text"] for row in rows] for sink, rows in self.rows.items()})
