"""A slow sink holds back the source, by credit, and the elements between them stay bounded."""

from __future__ import annotations

import pytest
from patience import patience
from watching import figures_of, until

import evenflow as ef

CREDIT = 4


@pytest.fixture
def gate(tmp_path):
    """Return a file for which the sink waits."""
    return tmp_path / "open"


def behind(gate):
    bound = patience(60)

    def wait(row):
        import time

        deadline = time.monotonic() + bound
        while not gate.exists() and time.monotonic() < deadline:
            time.sleep(0.01)

    return ef.to_callback(wait)


def held_back(job):
    """Return the source's figures once it only waits."""
    until(lambda: figures_of(job, "generate")[0].backpressure > 0.9, "the source waits for credit")
    return figures_of(job, "generate")[0]


def test_a_slow_sink_holds_the_source_back_and_bounds_what_waits(cluster, gate):
    flow, rows = ef.Dataflow("slow"), []
    numbers = flow.read(ef.generate(total=200_000, rows_per_batch=1000, keys=10)).parallelism(1)
    numbers.select("seq").write(behind(gate)).write(ef.to_list(rows))
    config = ef.JobConfig(
        parallelism=2,
        network=ef.NetworkConfig(batch_rows=1000, source_rows=1000, credit_batches=CREDIT),
        metrics=ef.MetricsConfig(window="100ms"),
    )
    job = flow.run(config=config)
    assert held_back(job).rows_in <= (2 * CREDIT + 2) * 1000
    assert all(figures.queued_batches <= CREDIT for figures in job.metrics())
    gate.touch()
    job.wait("60s")
    assert sorted(row["seq"] for row in rows) == list(range(200_000))


def test_wide_rows_are_bounded_by_their_bytes(cluster, gate):
    flow = ef.Dataflow("wide")
    numbers = flow.read(ef.generate(total=100_000, rows_per_batch=100, keys=10))
    texts = numbers.map_batches(lambda rows: {"text": ["x" * 10_000] * rows.num_rows})
    texts.key_by("text").aggregate(n=ef.count()).write(behind(gate))
    job = flow.run(
        config=ef.JobConfig(
            combine=False,
            network=ef.NetworkConfig(batch_rows=100, source_rows=100, credit_bytes=4 << 20),
            metrics=ef.MetricsConfig(window="100ms"),
        )
    )
    assert held_back(job).rows_in * 10_000 <= 8 << 20
    job.cancel()
    gate.touch()
    job.wait("60s")
