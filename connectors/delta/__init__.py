"""Delta Lake tables as a source and as a sink, over the library deltalake: the extra `evenflow[delta]`."""
