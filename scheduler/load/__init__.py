"""What workers measure, and the metrics that are made of it."""
