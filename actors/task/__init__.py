"""A task on a machine: its thread, clock, source, meter and saved state."""
