"""Spark as source and as sink, through a folder of Parquet files and the log of Spark's streaming file sink."""
