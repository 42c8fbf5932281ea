"""All benchmarks, in the order of `evenflow bench run --help`."""

from __future__ import annotations

from .balancing import run as balancing
from .compare import run as compare
from .harness.benchmark import Benchmark
from .kafka import run as kafka
from .latency import run as latency
from .migration import growth, skew
from .migration import run as migration
from .nexmark import ds2, moves
from .nexmark import run as nexmark
from .papers.psm import run as psm
from .papers.stela import run as stela
from .papers.yahoo import run as yahoo
from .recovery import run as recovery
from .scaling import run as scaling
from .sizing import run as sizing
from .soak import run as soak
from .throughput import run as throughput
from .upgrade import run as upgrade
from .wide import run as wide

_MODULES = (
    compare,
    throughput,
    latency,
    migration,
    growth,
    upgrade,
    skew,
    balancing,
    scaling,
    recovery,
    sizing,
    wide,
    soak,
    kafka,
    nexmark,
    moves,
    ds2,
    psm,
    stela,
    yahoo,
)
BENCHMARKS: dict[str, Benchmark] = {module.BENCHMARK.name: module.BENCHMARK for module in _MODULES}
"""The benchmarks by name."""
