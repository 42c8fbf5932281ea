"""Simulated jobs: the real state machines of coordinator and workers, with a virtual clock and a seeded choice of the next event.

Invariant: a seed determines the whole run, so that a failure can be repeated.
"""
