"""The Yahoo streaming benchmark: how often is each campaign's advertisement seen in ten seconds?

Chintapalli et al.: Benchmarking Streaming Computation Engines: Storm, Flink and Spark Streaming, IPDPSW 2016; its code is
github.com/yahoo/streaming-benchmarks.
"""

from __future__ import annotations

from .query import views_by_campaign

__all__ = ["views_by_campaign"]
