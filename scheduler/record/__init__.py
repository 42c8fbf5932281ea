"""The state of a job: its plan, checkpoints, migrations and rescales."""
