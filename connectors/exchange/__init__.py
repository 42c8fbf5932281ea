"""The folder of Parquet files that Spark and a job exchange, and the log of the committed ones."""
