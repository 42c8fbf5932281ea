"""Resources that Ray reserves for each worker of an operator: CPUs, GPUs, memory, and those that a cluster defines.

>>> Resources(gpus=1, memory=4 * 10**9, custom={"tpu": 2}).amounts(cpus=0.5)
{'CPU': 0.5, 'GPU': 1.0, 'memory': 4000000000.0, 'tpu': 2.0}
>>> Resources().amounts(cpus=0.0)
{}
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..errors import FlowError

CPU, GPU, MEMORY = "CPU", "GPU", "memory"
"""Ray's names of its own resources."""

_RAYS_OWN = frozenset({CPU, GPU, MEMORY, "object_store_memory"})
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]i?B|B)\s*")
_UNITS = {"B": 1} | {f"{unit}{i}B": base**n for i, base in (("", 1000), ("i", 1024)) for n, unit in enumerate("KMGT", 1)}


@dataclass(frozen=True, slots=True)
class Resources:
    """Amounts for each worker. `cpus`: None for those of `WorkerConfig`. `memory`: bytes, or a text such as "4GB".

    Raises FlowError for an impossible amount.
    """

    cpus: float | None = None
    gpus: float = 0.0
    memory: int | str = 0
    custom: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "memory", _bytes(self.memory))
        if not isinstance(self.custom, Mapping) or not all(isinstance(name, str) and name for name in self.custom):
            raise FlowError(f"custom={self.custom!r} must be amounts by the names that the cluster's nodes have, as {{'tpu': 1}}")
        if reserved := sorted(_RAYS_OWN & set(self.custom)):
            raise FlowError(f"custom={self.custom!r}: {reserved[0]!r} is a resource of Ray's own: use cpus=, gpus= or memory=")
        given = {"gpus": self.gpus, **{f"custom[{name!r}]": amount for name, amount in self.custom.items()}}
        for name, amount in given.items() if self.cpus is None else [("cpus", self.cpus), *given.items()]:
            if isinstance(amount, bool) or not isinstance(amount, (int, float)) or not 0 <= amount < math.inf:
                raise FlowError(f"{name}={amount!r} must be a number of at least 0")
            if name != "cpus" and amount > 1 and amount != int(amount):
                raise FlowError(f"{name}={amount!r}: Ray reserves whole numbers above 1")
        if self.cpus is not None and self.cpus > 1 and self.cpus != int(self.cpus):
            raise FlowError(f"cpus={self.cpus!r}: Ray reserves whole numbers above 1")

    def amounts(self, cpus: float) -> dict[str, float]:
        """Return the amounts by Ray's names, without zeros. `cpus`: the CPUs of a worker whose operator names none."""
        own = {CPU: cpus if self.cpus is None else self.cpus, GPU: self.gpus, MEMORY: self.memory, **self.custom}
        return {name: float(amount) for name, amount in own.items() if amount}


def names_besides_cpus(resources: Iterable[Resources]) -> list[str]:
    """Return Ray's names of all that these reserve, but for CPUs."""
    return sorted({name for each in resources for name in each.amounts(0.0) if name != CPU})


def described(amounts: Mapping[str, float]) -> str:
    """Describe amounts by Ray's names to people.

    >>> described({"CPU": 2.0, "GPU": 1.0, "memory": 4e9, "tpu": 0.5})
    '2 CPUs, 1 GPU, 4 GB of memory, 0.5 tpu'
    """
    words = []
    for name, amount in amounts.items():
        if name == MEMORY:
            words.append(f"{amount / 1e9:g} GB of memory")
        else:
            words.append(f"{amount:g} {name}{'s' * (name in (CPU, GPU) and amount != 1)}")
    return ", ".join(words)


def _bytes(size: object) -> int:
    if isinstance(size, int) and not isinstance(size, bool) and size >= 0:
        return size
    found = _SIZE.fullmatch(size) if isinstance(size, str) else None
    if found is None:
        raise FlowError(f"memory={size!r} must be a number of bytes, or a text such as '4GB' or '512MiB'")
    return int(float(found[1]) * _UNITS[found[2]])


NO_RESOURCES = Resources()
"""The resources of an operator that names none: those of `WorkerConfig`."""
