"""Live upgrades of a running job's code, compared with a stop and a start."""
