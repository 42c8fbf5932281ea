"""Checks your own connectors: sources and sinks must keep their contracts whenever a process is lost."""
