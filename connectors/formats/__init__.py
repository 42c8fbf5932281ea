"""File formats as sources and sinks: CSV, JSON, Parquet, and lines of text."""
