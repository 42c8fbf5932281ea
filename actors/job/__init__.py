"""A job on a machine: its interpreter, storage, clock and the memory of its run."""
