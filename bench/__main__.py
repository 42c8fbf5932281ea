"""`python -m evenflow.bench` is `evenflow bench`. Without arguments it writes the data and runs the benchmarks of one machine."""

from __future__ import annotations

import sys

from evenflow.cli import main

EVERYTHING = ("data", "run throughput", "run latency", "run migration", "run skew")

if __name__ == "__main__":
    commands = [sys.argv[1:]] if len(sys.argv) > 1 else [command.split() for command in EVERYTHING]
    sys.exit(max(main(["bench", *words]) for words in commands))
