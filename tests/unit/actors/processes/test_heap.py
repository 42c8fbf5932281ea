from __future__ import annotations

import os
import platform
import subprocess
import sys

import pyarrow as pa
import pytest

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no such settings")

BATCHES = """
import resource
import numpy as np
from evenflow.actors.processes.heap import keep_freed_memory

def batch():
    arrays = [np.ones(131_072) for _ in range(4)]
    del arrays

if {keeps}:
    keep_freed_memory()
for _ in range(3):
    batch()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    batch()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(*, keeps: bool, **environment: str) -> int:
    """Return the page faults of ten batches of four arrays of a megabyte in a new process."""
    ran = subprocess.run(
        [sys.executable, "-c", BATCHES.format(keeps=keeps)], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return int(ran.stdout)


def test_a_batch_gets_the_memory_of_the_one_before() -> None:
    assert faults(keeps=True) < 100 < faults(keeps=False)


def test_settings_of_the_environment_stay() -> None:
    assert faults(keeps=True, MALLOC_TRIM_THRESHOLD_="131072", MALLOC_MMAP_THRESHOLD_="131072") > 100


@pytest.mark.parametrize(("environment", "pool"), [({}, "jemalloc"), ({"ARROW_DEFAULT_MEMORY_POOL": "system"}, "system")])
def test_arrow_keeps_freed_memory_for_a_while_too(environment: dict[str, str], pool: str) -> None:
    if pool not in pa.supported_memory_backends():
        pytest.skip(f"this build of Arrow has no {pool}")
    script = "import pyarrow as pa; from evenflow.actors.processes.heap import *; keep_freed_memory(); give_back_freed_memory(); "
    ran = subprocess.run(
        [sys.executable, "-c", script + "print(pa.default_memory_pool().backend_name)"],
        env={name: value for name, value in os.environ.items() if name != "ARROW_DEFAULT_MEMORY_POOL"} | environment,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ran.stdout.strip() == pool
