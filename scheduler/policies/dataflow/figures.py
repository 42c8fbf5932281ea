"""The rates of an operator and of each of its instances, by which scaling decides.

Invariant: rates are records per second, 0 or from LEAST to MOST, so that results stay finite (lower rates count as 0); a *true*
rate is per second of useful time: the rate of an instance that never waits (Kalavri et al., Three steps is all you need, OSDI
2018, equation 4). An operator's rates are the sums over its instances.

>>> figures = OperatorFigures.summed("count", [InstanceFigures(600, observed_processing_rate=300), InstanceFigures(400)])
>>> figures.parallelism, figures.true_processing_rate, figures.observed_processing_rate
(2, 1000, 300)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ....balancer.outside_json import shown
from ....balancer.snapshot import LEAST, MAX_WORKERS, MOST
from ....engine.errors import SnapshotError

KINDS = ("continuous", "window", "join")
"""The ways in which operators work: record by record, or on gathered records."""

TRUE_RATES = ("true_processing_rate", "true_output_rate")
SUMMED = (*TRUE_RATES, "observed_processing_rate", "observed_output_rate", "queue_records", "backpressure", "starvation")
"""Fields that instances may give one by one."""

_RATES = (*SUMMED, "source_rate", "arrival_rate", "latency_ms")


@dataclass(frozen=True, slots=True)
class InstanceFigures:
    """One worker's. `queue_records` wait for it; `backpressure` is the part of its time for which it waited for a later
    operator's credit, `starvation` that for which it was ready to work while others had the CPUs.

    None: not known; a worker that had nothing to do has no true rates.
    """

    true_processing_rate: float | None = None
    true_output_rate: float | None = None
    observed_processing_rate: float | None = None
    observed_output_rate: float | None = None
    queue_records: float | None = None
    backpressure: float | None = None
    starvation: float | None = None

    def __post_init__(self) -> None:
        for name in SUMMED:
            if getattr(self, name) is not None:
                check_number(f"instances: {name}", getattr(self, name))
        _forget_tiny(self, SUMMED)

    @property
    def utilisation(self) -> float | None:
        """The part of its time in which it is busy, None where it isn't known."""
        if self.true_processing_rate is None or self.observed_processing_rate is None:
            return None
        return self.observed_processing_rate / self.true_processing_rate if self.true_processing_rate else 0.0


@dataclass(frozen=True, slots=True)
class OperatorFigures:
    """All instances of an operator together; None: not known.

    `source_rate`: records per second that are offered from outside, read or not; `backlog_growth`: how much faster they arrive
    than they are read, negative while a backlog is worked off. `arrival_rate`: records that arrive at the operator, where
    measured. `queue_records`: records that wait; for a source, records that it has not read. `backpressure`: the shares of time
    in which the instances waited for credit of the next operators, summed; `starvation`: the shares in which they were ready and
    had no CPU. `latency_ms`: the operator's part of a record's latency. `nodes`: the node of each instance. `kind`: one of KINDS.
    `chain`: operators of the same chain run in the same workers. `hottest_key_share`: the share of its hottest key in its
    records. `keyed`: True if records go by their keys, which can be rebalanced, False if round robin. `min_parallelism`,
    `max_parallelism`: its own bounds; `key_groups`: more workers than these have no work.

    Raises SnapshotError, naming operator and field, for impossible figures.
    """

    name: str
    parallelism: int
    source_rate: float | None = None
    true_processing_rate: float | None = None
    true_output_rate: float | None = None
    observed_processing_rate: float | None = None
    observed_output_rate: float | None = None
    arrival_rate: float | None = None
    backlog_growth: float | None = None
    queue_records: float = 0.0
    backpressure: float = 0.0
    starvation: float = 0.0
    latency_ms: float | None = None
    nodes: tuple[str, ...] = ()
    kind: str = "continuous"
    chain: str | None = None
    hottest_key_share: float | None = None
    keyed: bool = True
    min_parallelism: int | None = None
    max_parallelism: int | None = None
    key_groups: int | None = None
    instances: tuple[InstanceFigures, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise SnapshotError(f"operators: name is {shown(self.name)}: it must be a text that is not empty")
        where = f"operator `{self.name}`: "
        _check_counts(where, self)
        _forget_tiny(self, (*_RATES, "backlog_growth", "hottest_key_share"))
        for name in (name for name in _RATES if getattr(self, name) is not None):
            check_number(f"{where}{name}", getattr(self, name))
        if self.backlog_growth is not None:
            check_number(f"{where}backlog_growth", self.backlog_growth, least=-MOST)
        if self.hottest_key_share is not None:
            check_number(f"{where}hottest_key_share", self.hottest_key_share, most=1)
        check_number(f"{where}backpressure", self.backpressure, most=self.parallelism)
        check_number(f"{where}starvation", self.starvation, most=self.parallelism)
        if not isinstance(self.keyed, bool):
            raise SnapshotError(f"{where}keyed is {shown(self.keyed)}: it must be true or false")
        if self.kind not in KINDS:
            raise SnapshotError(f"{where}kind is {shown(self.kind)}: it must be one of {', '.join(KINDS)}")
        if self.chain is not None and not isinstance(self.chain, str):
            raise SnapshotError(f"{where}chain is {shown(self.chain)}: it must be a text, the same for all operators of a chain")

    @classmethod
    def summed(cls, name: str, instances: Sequence[InstanceFigures], **others: Any) -> OperatorFigures:
        """Return an operator as the sum of its instances. One without true rates counts as the mean of the others; `others`:
        further fields.
        """
        sums = {field: _sum(field, [getattr(one, field) for one in instances]) for field in SUMMED}
        known = {field: value for field, value in sums.items() if value is not None}
        return cls(name, **{"parallelism": len(instances), **known, **others, "instances": tuple(instances)})

    @property
    def per_instance_rate(self) -> float | None:
        """The true rate of a mean instance: records processed, or emitted if it takes no input. None if unknown."""
        rate = self.true_processing_rate or self.true_output_rate
        return rate / self.parallelism if rate else None


def check_number(what: str, value: Any, least: float = 0.0, most: float = MOST) -> None:
    """Raise SnapshotError unless `value` is a number within the bounds, which are finite."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
        raise SnapshotError(f"{what} is {shown(value)}: it must be a finite number, {least:g} or more and at most {most:g}")


def _forget_tiny(figures: OperatorFigures | InstanceFigures, names: Sequence[str]) -> None:
    for name in names:
        value = getattr(figures, name)
        if isinstance(value, float) and value and -LEAST < value < LEAST:
            object.__setattr__(figures, name, 0.0)


def _check_counts(where: str, operator: OperatorFigures) -> None:
    for name in ("parallelism", "min_parallelism", "max_parallelism", "key_groups"):
        value = getattr(operator, name)
        if (value is not None or name == "parallelism") and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise SnapshotError(f"{where}{name} is {shown(value)}: it must be a whole number, 1 or more")
    if operator.parallelism > MAX_WORKERS:
        raise SnapshotError(f"{where}parallelism is {shown(operator.parallelism)}: no operator has more than {MAX_WORKERS} workers")
    for name in ("nodes", "instances"):
        entries = len(getattr(operator, name))
        if entries and entries != operator.parallelism:
            raise SnapshotError(f"{where}{name} has {entries} entries, parallelism is {operator.parallelism}: one for each instance")


def _sum(field: str, values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    return sum(known) * len(values) / len(known) if field in TRUE_RATES and len(known) < len(values) else sum(known)
