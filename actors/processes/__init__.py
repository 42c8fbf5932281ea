"""The processes of a job on Ray: coordinator, workers, spares, and where they are placed."""
