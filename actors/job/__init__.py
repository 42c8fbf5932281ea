"""A job on a machine: its interpreter, storage, clock and memory of its run."""
