"""The processes of a job on Ray: coordinator, workers, spares, and their placement."""
