"""Throughput of windows and of a Python function per record, compared with other systems."""
