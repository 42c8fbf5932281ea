"""Sources and sinks in Python programs: items, generators, lists, functions and standard output."""
