"""Benchmarks: data, run, compare."""
