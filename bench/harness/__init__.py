"""The parts that benchmarks share: their declaration, their results, the machine, sources and sinks that measure."""
