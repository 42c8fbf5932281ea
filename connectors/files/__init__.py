"""The base of sources and sinks of files: paths, splits, positions, and part files."""
