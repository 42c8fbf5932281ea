"""Iceberg tables as a source and as a sink, over the library pyiceberg: the extra `evenflow[iceberg]`."""
